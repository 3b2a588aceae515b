"""What waits for a person, and what becomes of it when nobody decides: for now the retention of join
requests.
"""
