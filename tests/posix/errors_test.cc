// Errors of calls on objects of the wrong type. Tables list the calls and the objects.
#include <functional>

#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct Call {
  const char* name;
  std::function<int(const char* path)> act;
};

// Returns every call with a path that must exist.
const std::vector<Call>& CallsOnAPath() {
  static const std::vector<Call> calls = {
      {"open", [](const char* path) { return Descriptor(path, O_RDONLY).error(); }},
      {"stat",
       [](const char* path) {
         struct stat stat = {};
         return Outcome(::stat(path, &stat));
       }},
      {"chmod", [](const char* path) { return Outcome(chmod(path, 0700)); }},
      {"chown", [](const char* path) { return Outcome(chown(path, 1, 1)); }},
      {"truncate", [](const char* path) { return Outcome(truncate(path, 10)); }},
      {"utimensat",
       [](const char* path) { return Outcome(utimensat(AT_FDCWD, path, nullptr, 0)); }},
      {"unlink", [](const char* path) { return Outcome(unlink(path)); }},
      {"rmdir", [](const char* path) { return Outcome(rmdir(path)); }},
      {"access", [](const char* path) { return Outcome(access(path, F_OK)); }},
      {"chdir", [](const char* path) { return Outcome(chdir(path)); }},
      {"readlink",
       [](const char* path) {
         char buffer[10];
         return Outcome(readlink(path, buffer, sizeof buffer));
       }},
      {"link", [](const char* path) { return Outcome(link(path, "/nowhere/at/all")); }},
      {"rename", [](const char* path) { return Outcome(rename(path, path)); }},
  };
  return calls;
}

// Returns every call that makes an object at a path.
const std::vector<Call>& CallsThatMake() {
  static const std::vector<Call> calls = {
      {"creat",
       [](const char* path) { return Descriptor(path, O_CREAT | O_EXCL | O_WRONLY).error(); }},
      {"mkdir", [](const char* path) { return Outcome(mkdir(path, 0755)); }},
      {"mkfifo", [](const char* path) { return Outcome(mkfifo(path, 0600)); }},
      {"mknod", [](const char* path) { return Outcome(mknod(path, S_IFREG | 0600, 0)); }},
      {"symlink", [](const char* path) { return Outcome(symlink("target", path)); }},
  };
  return calls;
}

struct Things : OnTheFileSystem {
  Things() {
    REQUIRE(WriteFile(Path("file"), "content") == 0);
    REQUIRE(Outcome(mkdir(Path("directory").c_str(), 0755)) == 0);
    REQUIRE(WriteFile(Path("directory/inside"), "") == 0);
    REQUIRE(Outcome(symlink("file", Path("link").c_str())) == 0);
    REQUIRE(Outcome(symlink("missing", Path("dangling").c_str())) == 0);
    REQUIRE(Outcome(mkfifo(Path("fifo").c_str(), 0600)) == 0);
  }
};

TEST_CASE_METHOD(Things, "Calls on a missing object fail with ENOENT") {
  for (const Call& call : CallsOnAPath()) {
    INFO(call.name);
    CHECK(call.act(Path("missing").c_str()) == ENOENT);
    CHECK(call.act(Path("missing/below").c_str()) == ENOENT);
    CHECK(call.act(Path("directory/missing").c_str()) == ENOENT);
    CHECK(call.act("") == ENOENT);
  }
  for (const Call& call : CallsThatMake()) {
    INFO(call.name);
    CHECK(call.act(Path("missing/below").c_str()) == ENOENT);
    CHECK(call.act("") == ENOENT);
  }
}

TEST_CASE_METHOD(Things, "Calls with a path through a non-directory fail with ENOTDIR") {
  for (const std::vector<Call>& calls : {CallsOnAPath(), CallsThatMake()}) {
    for (const Call& call : calls) {
      for (const char* path : {"file/below", "fifo/below", "link/below"}) {
        INFO(call.name << " " << path);
        CHECK(call.act(Path(path).c_str()) == ENOTDIR);
      }
      INFO(call.name);
      CHECK(call.act(Path("dangling/below").c_str()) == ENOENT);
    }
  }
}

TEST_CASE_METHOD(Things, "Calls that make an object at an existing one fail with EEXIST") {
  for (const Call& call : CallsThatMake()) {
    for (const char* path :
         {"file", "directory", "link", "dangling", "fifo", "directory/.", ".."}) {
      INFO(call.name << " " << path);
      CHECK(call.act(Path(path).c_str()) == EEXIST);
    }
  }
  CHECK(Outcome(link(Path("file").c_str(), Path("fifo").c_str())) == EEXIST);
  CHECK(Outcome(link(Path("file").c_str(), Path("directory").c_str())) == EEXIST);
}

TEST_CASE_METHOD(Things, "Calls for files fail with EISDIR on directories") {
  const std::string path = Path("directory");
  CHECK(Descriptor(path, O_WRONLY).error() == EISDIR);
  CHECK(Descriptor(path, O_RDWR).error() == EISDIR);
  CHECK(Descriptor(path, O_WRONLY | O_CREAT).error() == EISDIR);
  CHECK(Descriptor(path, O_RDONLY | O_TRUNC).error() == EISDIR);
  CHECK(Outcome(truncate(path.c_str(), 0)) == EISDIR);
  CHECK(Outcome(unlink(path.c_str())) == EISDIR);
  char byte = 0;
  const Descriptor opened(path);
  CHECK(Outcome(read(opened.get(), &byte, 1)) == EISDIR);
  CHECK(Outcome(pread(opened.get(), &byte, 1, 0)) == EISDIR);
}

TEST_CASE_METHOD(Things, "Calls for directories fail with ENOTDIR on files") {
  for (const char* name : {"file", "fifo", "link", "dangling"}) {
    INFO(name);
    CHECK(Outcome(rmdir(Path(name).c_str())) == ENOTDIR);
  }
  CHECK(Descriptor(Path("file"), O_RDONLY | O_DIRECTORY).error() == ENOTDIR);
  CHECK(Outcome(chdir(Path("file").c_str())) == ENOTDIR);
  CHECK(Descriptor(Path("file/")).error() == ENOTDIR);
  CHECK(Outcome(unlink(Path("file/").c_str())) == ENOTDIR);
}

TEST_CASE_METHOD(Things, "Directories that are not empty or in use cannot be removed") {
  CHECK(Outcome(rmdir(Path("directory").c_str())) == ENOTEMPTY);
  CHECK(Outcome(rmdir(Path("directory/.").c_str())) == EINVAL);
  CHECK(Outcome(rmdir(Path("directory/..").c_str())) == ENOTEMPTY);
}

TEST_CASE_METHOD(Things, "Only symbolic links can be read with readlink") {
  char buffer[10];
  for (const char* name : {"file", "directory", "fifo"}) {
    CHECK(Outcome(readlink(Path(name).c_str(), buffer, sizeof buffer)) == EINVAL);
  }
}

TEST_CASE_METHOD(Things, "Descriptors allow only the access they were opened for") {
  char byte = 0;
  const Descriptor reader(Path("file"), O_RDONLY);
  const Descriptor writer(Path("file"), O_WRONLY);
  CHECK(Outcome(write(reader.get(), &byte, 1)) == EBADF);
  CHECK(Outcome(read(writer.get(), &byte, 1)) == EBADF);
  CHECK(Outcome(ftruncate(reader.get(), 0)) == EINVAL);
  CHECK(Outcome(pread(reader.get(), &byte, 1, -1)) == EINVAL);
  CHECK(Outcome(lseek(reader.get(), -1, SEEK_SET)) == EINVAL);
  CHECK(Outcome(lseek(reader.get(), 0, 99)) == EINVAL);
  CHECK(read(reader.get(), &byte, 0) == 0);
  CHECK(pread(reader.get(), &byte, 1, 7) == 0);
  CHECK(pread(reader.get(), &byte, 1, 700) == 0);
  CHECK(ReadFile(Path("file")) == "content");
}

TEST_CASE_METHOD(Things, "Links do not leave the file system, and its root cannot be moved",
                 "[siltfs]") {
  CHECK(Outcome(link(Path("file").c_str(), "/tmp/siltfs-cannot-be")) == EXDEV);
  CHECK(Outcome(rename(Path("file").c_str(), "/tmp/siltfs-cannot-be")) == EXDEV);
  CHECK(ReadFile(Path("file")) == "content");
  CHECK(Outcome(rmdir(FileSystemRoot().c_str())) == EBUSY);
}

}  // namespace
}  // namespace siltfs::testing
