/* Only calls that are safe in a handler (signal-safety(7)): write (also inside progress_erase),
 * unlink inside atomic_file_remove_pending, _exit, raise.
 *
 * Faults are caught on a stack of their own, so that an overflow of the main one is reported too.
 * Under AddressSanitizer they are left to it. BUG() ends with exit(70): on_exit adds the pass to
 * its message. */
#include "signals.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "progress.h"
#include "support/files.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif

enum { EXIT_FAULT = 70, EXIT_INTERRUPTED = 130 };

/* Handlers can only reach what lives at file scope. */
static PassProgress progress;
static char fault_stack[64 * 1024];

static void say(const char *text) {
  size_t size = strlen(text);
  while (size) {
    ssize_t written = write(STDERR_FILENO, text, size);
    if (written <= 0)
      return;
    text += written;
    size -= (size_t)written;
  }
}

static void say_number(uint32_t value) {
  char digits[12];
  size_t at = sizeof digits - 1;
  digits[at] = '\0';
  do
    digits[--at] = (char)('0' + value % 10);
  while (value /= 10);
  say(digits + at);
}

static void say_progress(void) {
  const char *pass = progress.pass, *plugin = progress.plugin;
  if (!pass && !plugin)
    return;
  say("etc: it happened in ");
  if (plugin) {
    say("code of plug-in '");
    say(plugin);
    say(pass ? "', in " : "'\n");
  }
  if (!pass)
    return;
  say("pass '");
  say(pass);
  say("' (run ");
  say_number(progress.number);
  say(", stage ");
  say(progress.stage);
  say(")\netc: the same command with --print-before=");
  say(pass);
  say(" shows the graph that the pass was given\n");
}

static void on_interrupt(int number) {
  (void)number;
  progress_erase();
  atomic_file_remove_pending();
  _exit(EXIT_INTERRUPTED);
}

/* Ends by the signal itself, as the caller expects. */
static void on_end(int number) {
  progress_erase();
  atomic_file_remove_pending();
  signal(number, SIG_DFL);
  raise(number);
}

static void on_fault(int number) {
  progress_erase();
  atomic_file_remove_pending();
  say(number == SIGSEGV   ? "etc: internal error: segmentation fault\n"
      : number == SIGFPE  ? "etc: internal error: arithmetic fault\n"
      : number == SIGABRT ? "etc: internal error: aborted\n"
      : number == SIGBUS  ? "etc: internal error: bus error\n"
                          : "etc: internal error: illegal instruction\n");
  if (!progress.plugin)
    say("etc: this is a fault of etc, not of the model; please report it with the command line\n");
  say_progress();
  _exit(EXIT_FAULT);
}

/* A mapped file became shorter while it was read; other bus errors are faults. */
static void on_bus(int number, siginfo_t *info, void *context) {
  (void)context;
  if (info->si_code != BUS_ADRERR)
    on_fault(number);
  progress_erase();
  atomic_file_remove_pending();
  say("error: an input file changed while it was being read [E0108]\n");
  _exit(1);
}

/* Only BUG(), or a plug-in, calls exit inside a pass, a plug-in outside of passes too: readers of
 * delegates. */
static void on_end_of_process(int status, void *unused) {
  (void)unused;
  bool by_plugin = progress.plugin && status != EXIT_FAULT;
  if (by_plugin) {
    atomic_file_remove_pending();
    say("etc: internal error: exit was called\n");
  }
  if (by_plugin || status == EXIT_FAULT)
    say_progress();
  if (by_plugin)
    _exit(EXIT_FAULT);
}

static void catch_signal(int number, void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, NULL);
}

PassProgress *signals_install(void) {
  bug_plugin = &progress.plugin;
  catch_signal(SIGINT, on_interrupt, 0);
  catch_signal(SIGTERM, on_end, 0);
  catch_signal(SIGHUP, on_end, 0);
  catch_signal(SIGPIPE, on_end, 0);
  catch_signal(SIGXFSZ, SIG_IGN,
               0); /* a limit on file sizes is an error of write, with a message */
#if !defined(SANITIZED)
  stack_t stack = {.ss_sp = fault_stack, .ss_size = sizeof fault_stack};
  sigaltstack(&stack, NULL);
  const int faults[] = {SIGSEGV, SIGFPE, SIGABRT, SIGILL};
  for (size_t i = 0; i < COUNT_OF(faults); i++)
    catch_signal(faults[i], on_fault, SA_ONSTACK);
  struct sigaction bus = {.sa_sigaction = on_bus, .sa_flags = SA_ONSTACK | SA_SIGINFO};
  sigemptyset(&bus.sa_mask);
  sigaction(SIGBUS, &bus, NULL);
#else
  (void)on_fault;
  (void)on_bus;
  (void)fault_stack;
#endif
  on_exit(on_end_of_process, NULL);
  return &progress;
}
