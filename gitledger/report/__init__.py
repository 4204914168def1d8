"""Values to text: returns strings, prints nothing."""
