"""Hardware lanes (a later issue): doctor, recipes, probe process."""
