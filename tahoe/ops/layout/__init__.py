"""Where rows stand: which files are written anew together, and in which order their rows go into new ones."""
