// Runs a program on a system whose file systems seem to have no unnamed files (O_TMPFILE), as for
// example NFS:
//
//   without_unnamed_files COMMAND [ARGUMENT]...
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

namespace {

// O_TMPFILE contains O_DIRECTORY, which may be set alone. The other bit is O_TMPFILE's own.
constexpr unsigned kOwnBit = O_TMPFILE & ~O_DIRECTORY;
// The lower half of the flags of openat(2), on little-endian machines.
constexpr unsigned kFlags = offsetof(seccomp_data, args) + 2 * sizeof(__u64);

bool RefuseUnnamedFiles() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFlags),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kOwnBit, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || !RefuseUnnamedFiles()) {
    std::perror("without_unnamed_files");
    return 125;
  }
  execvp(argv[1], argv + 1);
  std::perror(argv[1]);
  return 125;
}
