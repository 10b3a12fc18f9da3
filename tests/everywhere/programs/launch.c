/* A launcher as `uv run` is: linked statically, it starts a program and waits for it. */
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const pid_t child = fork();
  if (child == 0) {
    execvp(argv[1], argv + 1);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return argc > 1 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
