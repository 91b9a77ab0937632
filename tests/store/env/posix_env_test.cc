// Behavior that only PosixEnv has.
#include "store/env/posix_env.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "store/env/posix_error.h"
#include "tests/support/catch.h"
#include "tests/support/refused_call.h"
#include "tests/support/temporary_directory.h"

namespace siltfs {
namespace {

TEST_CASE("every error number has a code and a description") {
  struct Case {
    int error;
    StatusCode code;
  };
  for (Case c : {Case{ENOENT, StatusCode::kNotFound},
                 Case{EEXIST, StatusCode::kAlreadyExists},
                 Case{ENOTDIR, StatusCode::kNotADirectory},
                 Case{EISDIR, StatusCode::kIsADirectory},
                 Case{ENOTEMPTY, StatusCode::kNotEmpty},
                 Case{ENAMETOOLONG, StatusCode::kNameTooLong},
                 Case{EMLINK, StatusCode::kTooManyLinks},
                 Case{EFBIG, StatusCode::kFileTooLarge},
                 Case{EINVAL, StatusCode::kInvalidArgument},
                 Case{EPERM, StatusCode::kNotPermitted},
                 Case{EACCES, StatusCode::kAccessDenied},
                 Case{EROFS, StatusCode::kReadOnly},
                 Case{ENOSPC, StatusCode::kNoSpace},
                 Case{EDQUOT, StatusCode::kNoSpace},
                 Case{EIO, StatusCode::kIoError},
                 Case{ENODEV, StatusCode::kIoError},
                 Case{EAGAIN, StatusCode::kInUse},
                 Case{EBUSY, StatusCode::kInUse},
                 Case{ENODATA, StatusCode::kNoAttribute},
                 Case{ERANGE, StatusCode::kBufferTooSmall},
                 Case{EOPNOTSUPP, StatusCode::kUnsupported},
                 Case{ENOSYS, StatusCode::kUnsupported},
                 Case{ESTALE, StatusCode::kStale},
                 Case{EINTR, StatusCode::kInterrupted},
                 Case{ENOMEM, StatusCode::kOutOfMemory},
                 Case{EMFILE, StatusCode::kOutOfMemory}}) {
    INFO("error number " << c.error);
    REQUIRE(StatusCodeName(CodeOfErrno(c.error)) == StatusCodeName(c.code));
  }
  REQUIRE(PosixError("read", EIO).ToString() == "cannot read: Input/output error");
  REQUIRE(PosixError("read", 4095).ToString() == "cannot read: error 4095");
}

TEST_CASE("started programs inherit no descriptors") {
  testing::TemporaryDirectory directory;
  auto env = NewPosixEnv();
  const int before = dup(0);  // the lowest free number
  close(before);
  auto file = env->OpenFile(directory / "f", {.mode = OpenMode::kCreate});
  REQUIRE_OK(file);
  REQUIRE((fcntl(before, F_GETFD) & FD_CLOEXEC) != 0);
  file->reset();
  REQUIRE(fcntl(before, F_GETFD) == -1);
  auto lock = env->LockFile(directory / "lock");
  REQUIRE_OK(lock);
  REQUIRE((fcntl(before, F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("only the owner has access to created files and directories") {
  testing::TemporaryDirectory directory;
  auto env = NewPosixEnv();
  REQUIRE_OK(env->OpenFile(directory / "f", {.mode = OpenMode::kCreate}));
  REQUIRE_OK(env->CreateDirectory(directory / "d"));
  struct stat info;
  REQUIRE(stat((directory / "f").c_str(), &info) == 0);
  REQUIRE((info.st_mode & 0777) == 0600);
  REQUIRE(stat((directory / "d").c_str(), &info) == 0);
  REQUIRE((info.st_mode & 0777) == 0700);
}

TEST_CASE("a listing reports a symbolic link as a link") {
  testing::TemporaryDirectory directory;
  REQUIRE(symlink("nowhere", (directory / "link").c_str()) == 0);
  auto entries = NewPosixEnv()->ListDirectory(directory.path());
  REQUIRE_OK(entries);
  REQUIRE(entries->size() == 1);
  REQUIRE((*entries)[0].type == FileType::kLink);
}

TEST_CASE("a pipe or device in place of a file is neither waited for nor written to") {
  testing::TemporaryDirectory directory;
  auto env = NewPosixEnv();
  REQUIRE(mkfifo((directory / "pipe").c_str(), 0600) == 0);
  // A character device like /dev/zero.
  REQUIRE(mknod((directory / "device").c_str(), S_IFCHR | 0600, makedev(1, 5)) == 0);
  for (const OpenMode mode : {OpenMode::kRead, OpenMode::kReadWrite}) {
    REQUIRE_CODE(env->OpenFile(directory / "pipe", {.mode = mode}), kCorruption);
    REQUIRE_CODE(env->OpenFile(directory / "device", {.mode = mode}), kCorruption);
  }
  REQUIRE_CODE(env->LockFile(directory / "pipe"), kCorruption);
}

TEST_CASE("if links are refused, no call follows one") {
  testing::TemporaryDirectory directory;
  const std::string root = std::filesystem::canonical(directory.path());
  const auto path = [&root](std::string_view name) { return root + "/" + std::string(name); };
  auto follows = NewPosixEnv();
  auto refuses = NewPosixEnv({.links = SymbolicLinks::kRefuse});
  REQUIRE_OK(refuses->CreateDirectory(path("d")));
  REQUIRE_OK(refuses->OpenFile(path("d/f"), {.mode = OpenMode::kCreate}));
  REQUIRE(symlink("d", path("to-d").c_str()) == 0);
  REQUIRE(symlink("d/f", path("to-f").c_str()) == 0);
  REQUIRE(symlink("d/new", path("to-new").c_str()) == 0);
  REQUIRE_OK(follows->OpenFile(path("to-f"), {}));
  REQUIRE_OK(follows->OpenFile(path("to-d/f"), {}));
  REQUIRE(follows->GetFileInfo(path("to-d"))->type == FileType::kDirectory);
  for (const OpenMode mode : {OpenMode::kRead, OpenMode::kReadWrite}) {
    for (const std::string_view name : {"to-f", "to-new", "to-d/f"})
      REQUIRE_CODE(refuses->OpenFile(path(name), {.mode = mode}), kCorruption);
  }
  REQUIRE_CODE(refuses->OpenFile(path("to-new"), {.mode = OpenMode::kCreate}), kAlreadyExists);
  REQUIRE_CODE(refuses->OpenFile(path("to-d/new"), {.mode = OpenMode::kCreate}), kCorruption);
  REQUIRE_CODE(refuses->CreateDirectory(path("to-d/new")), kCorruption);
  REQUIRE_CODE(refuses->CreateDirectory(path("to-new")), kAlreadyExists);
  REQUIRE_CODE(refuses->ListDirectory(path("to-d")), kCorruption);
  REQUIRE_CODE(refuses->RemoveFile(path("to-d/f")), kCorruption);
  REQUIRE_CODE(refuses->RemoveDirectory(path("to-d/e")), kCorruption);
  REQUIRE_CODE(refuses->Rename(path("to-d/f"), path("f")), kCorruption);
  REQUIRE_CODE(refuses->Rename(path("d/f"), path("to-d/g")), kCorruption);
  REQUIRE_CODE(refuses->SyncDirectory(path("to-d")), kCorruption);
  REQUIRE_CODE(refuses->LockFile(path("to-new")), kCorruption);
  REQUIRE_CODE(refuses->GetFileInfo(path("to-d/f")), kCorruption);
  CHECK(refuses->GetFileInfo(path("to-f"))->type == FileType::kLink);
  const auto entries = refuses->ListDirectory(path("d"));
  REQUIRE_OK(entries);
  CHECK(entries->size() == 1);
  // A link itself can be removed and renamed, and stays a link.
  REQUIRE_OK(refuses->Rename(path("to-f"), path("d/link")));
  REQUIRE_OK(refuses->RemoveFile(path("d/link")));
  REQUIRE_OK(refuses->OpenFile(path("d/f"), {}));
}

TEST_CASE("without openat2, a link as the last name is still not followed") {
  for (const unsigned error : {EPERM, ENOSYS}) {
    testing::TemporaryDirectory directory;
    REQUIRE_OK(NewPosixEnv()->OpenFile(directory / "f", {.mode = OpenMode::kCreate}));
    REQUIRE(symlink("f", (directory / "to-f").c_str()) == 0);
    bool filtered = false;
    Status file;
    Status link;
    std::thread([&] {
      filtered = testing::RefuseCall(SYS_openat2, error);
      const auto env = NewPosixEnv({.links = SymbolicLinks::kRefuse});
      file = env->OpenFile(directory / "f", {}).status();
      link = env->OpenFile(directory / "to-f", {}).status();
    }).join();
    if (!filtered) return;  // filters are refused here
    REQUIRE_OK(file);
    REQUIRE_CODE(link, kCorruption);
  }
}

TEST_CASE("a write shortened by a limit continues, and its failure has the offset") {
  testing::TemporaryDirectory directory;
  auto file = NewPosixEnv()->OpenFile(directory / "f", {.mode = OpenMode::kCreate});
  REQUIRE_OK(file);
  rlimit old_limit;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  auto* old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{5'000, old_limit.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  Status status = (*file)->Write(1'000, Bytes(8'000, 'x'));  // the first call takes 4,000 bytes
  setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  REQUIRE_CODE(status, kFileTooLarge);
  REQUIRE(status.offset() == 5'000);
  REQUIRE(status.path() == directory / "f");
  REQUIRE(*(*file)->Size() == 5'000);
}

TEST_CASE("a lock held by another process is in use, and free when that process is killed") {
  testing::TemporaryDirectory directory;
  const std::string path = directory / "lock";
  int to_parent[2];
  REQUIRE(pipe(to_parent) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto lock = NewPosixEnv()->LockFile(path);
    const char answer = lock.ok() ? 'y' : 'n';
    if (write(to_parent[1], &answer, 1) != 1) _exit(1);
    while (true) pause();
  }
  char answer = 0;
  REQUIRE(read(to_parent[0], &answer, 1) == 1);
  REQUIRE(answer == 'y');
  auto env = NewPosixEnv();
  REQUIRE_CODE(env->LockFile(path), kInUse);
  kill(child, SIGKILL);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  REQUIRE_OK(env->LockFile(path));
  close(to_parent[0]);
  close(to_parent[1]);
}

}  // namespace
}  // namespace siltfs
