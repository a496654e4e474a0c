/* A shared object that is no plug-in. */
int nothing;
