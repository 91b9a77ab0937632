// A gate before calls on files, for LD_PRELOAD: a test can stop a program at a read or at a sync,
// and knows when it stands there.
//
// SILTFS_TEST_GATE names a directory. While it has the file "shut", whose text is "CALL PART",
// calls of this kind on files with this part in their paths wait: CALL is "pread", "sync" (fsync
// and fdatasync) or "syncfs". The first call that waits makes the file "reached".
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr useconds_t kPause = 5000;

std::string ReadSmallFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  char bytes[PATH_MAX];
  const ssize_t got = read(file, bytes, sizeof bytes);
  close(file);
  return got > 0 ? std::string(bytes, static_cast<size_t>(got)) : std::string();
}

std::string PathOf(int file) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = readlink(link.c_str(), path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string();
}

void Pass(const char* call, int file) {
  const char* const gate = std::getenv("SILTFS_TEST_GATE");
  if (gate == nullptr) return;
  const std::string directory = gate;
  for (;;) {
    std::string text = ReadSmallFile(directory + "/shut");
    while (!text.empty() && text.back() == '\n') text.pop_back();
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.compare(0, space, call) != 0) return;
    if (PathOf(file).find(text.substr(space + 1)) == std::string::npos) return;
    const int reached =
        open((directory + "/reached").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (reached >= 0) close(reached);
    usleep(kPause);
  }
}

template <typename Function>
Function Original(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t pread(int file, void* buffer, size_t size, off_t offset) {
  static const auto original = Original<ssize_t (*)(int, void*, size_t, off_t)>("pread");
  Pass("pread", file);
  return original(file, buffer, size, offset);
}

int fsync(int file) {
  static const auto original = Original<int (*)(int)>("fsync");
  Pass("sync", file);
  return original(file);
}

int fdatasync(int file) {
  static const auto original = Original<int (*)(int)>("fdatasync");
  Pass("sync", file);
  return original(file);
}

int syncfs(int file) {
  static const auto original = Original<int (*)(int)>("syncfs");
  Pass("syncfs", file);
  return original(file);
}

}  // extern "C"
