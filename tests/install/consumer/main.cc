// A stranger's program: the public header alone, nothing of src.
#include <millpond/millpond.h>

int main() { return 0; }
