"""The test kit: real servers, a clock that tests set, helpers that wait for a state instead of sleeping."""
