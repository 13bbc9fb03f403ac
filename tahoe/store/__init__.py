"""Where tables lie: folders and object stores behind one small interface."""
