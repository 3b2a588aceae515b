"""What Lastcall tells people and agents of what became of their matters, by every way that reaches them."""
