#include "store/env/programs.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <memory>
#include <utility>

#include "store/env/posix_descriptor.h"
#include "store/env/posix_error.h"
#include "store/env/process.h"

extern char** environ;

namespace siltfs {
namespace {

constexpr int kFirstOther = 3;  // the descriptor after standard error

// Returns pointers to these strings and a null pointer at the end, as execve(2) expects them.
std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> WithName(const std::string& path, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), path);
  return arguments;
}

// The settings of posix_spawn(3). The first call that fails decides error().
class SpawnSettings {
 public:
  SpawnSettings() {
    Keep(posix_spawnattr_init(&attributes_));
    Keep(posix_spawn_file_actions_init(&actions_));
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  void SetUp() {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    Keep(posix_spawnattr_setsigmask(&attributes_, &none));
    Keep(posix_spawnattr_setsigdefault(&attributes_, &all));
    Keep(posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID));
    Keep(posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0));
    Keep(posix_spawn_file_actions_adddup2(&actions_, STDERR_FILENO, STDOUT_FILENO));
    Keep(posix_spawn_file_actions_addclosefrom_np(&actions_, kFirstOther));
    Keep(posix_spawn_file_actions_addchdir_np(&actions_, "/"));
  }
  int error() const { return error_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }

 private:
  void Keep(int error) {
    if (error_ == 0) error_ = error;
  }

  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
  int error_ = 0;
};

bool IsPlainName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

bool IsSafe(const struct stat& info) {
  const bool by_owner = info.st_uid == 0 || info.st_uid == geteuid();
  return by_owner && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

}  // namespace

Result<std::string> PathOfOwnProgram() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length < 0) return PosixError("find this program", errno).At("/proc/self/exe");
  return std::string(path.data(), static_cast<size_t>(length));
}

Status BecomeProgram(const std::string& path, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = WithName(path, arguments);
  execv(path.c_str(), Pointers(words).data());
  return PosixError("start the program", errno).At(path);
}

std::vector<std::string> CurrentEnvironment() {
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  return variables;
}

Result<StartedProgram> StartedProgram::Start(const Options& options) {
  std::vector<std::string> words = WithName(options.path, options.arguments);
  std::vector<std::string> variables = options.environment;
  SpawnSettings settings;
  settings.SetUp();
  pid_t pid = 0;
  const int error =
      settings.error() != 0
          ? settings.error()
          : posix_spawnp(&pid, options.path.c_str(), settings.actions(), settings.attributes(),
                         Pointers(words).data(), Pointers(variables).data());
  if (error != 0) return PosixError("start the program", error).At(options.path);
  return StartedProgram(options.path, pid);
}

Result<std::optional<ProgramEnd>> StartedProgram::Wait(std::chrono::milliseconds timeout) {
  if (timeout.count() > 0) WaitForProcessEnd(pid_, timeout);
  int status = 0;
  const pid_t ended =
      RetryInterrupted([&] { return waitpid(static_cast<pid_t>(pid_), &status, WNOHANG); });
  if (ended < 0) return PosixError("wait for the program", errno).At(path_);
  if (ended == 0) return std::optional<ProgramEnd>();
  ProgramEnd end;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  return std::optional<ProgramEnd>(end);
}

void StartedProgram::Kill() { kill(-static_cast<pid_t>(pid_), SIGKILL); }

Result<ProgramDirectory> FindPrograms(const std::string& directory) {
  ProgramDirectory found;
  const std::unique_ptr<DIR, CloseDirectory> opened(opendir(directory.c_str()));
  if (opened == nullptr) {
    if (errno == ENOENT) return found;
    return PosixError("read the directory", errno).At(directory);
  }
  struct stat info;
  if (fstat(dirfd(opened.get()), &info) != 0)
    return PosixError("look at the directory", errno).At(directory);
  if (!IsSafe(info)) {
    return Status(StatusCode::kNotPermitted,
                  "its programs are not run, because other users can change this directory")
        .At(directory);
  }
  errno = 0;
  while (const dirent* entry = readdir(opened.get())) {
    const std::string name = entry->d_name;
    const std::string path = fmt::format("{}/{}", directory, name);
    if (!IsPlainName(name) || fstatat(dirfd(opened.get()), entry->d_name, &info, 0) != 0 ||
        !S_ISREG(info.st_mode) || access(path.c_str(), X_OK) != 0) {
      continue;
    }
    if (IsSafe(info)) {
      found.programs.push_back(path);
    } else {
      found.refused.push_back(
          fmt::format("{}: it is not run, because other users can change it", path));
    }
  }
  std::sort(found.programs.begin(), found.programs.end());
  std::sort(found.refused.begin(), found.refused.end());
  return found;
}

}  // namespace siltfs
