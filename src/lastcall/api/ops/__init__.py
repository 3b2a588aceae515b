"""What whoever runs the server asks it: when it must be awake, and how it is doing."""
