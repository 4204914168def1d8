"""The built-in recipes: one module each, whose content is what a report's `recipe.digest` names."""
