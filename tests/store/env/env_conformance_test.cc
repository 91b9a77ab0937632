// The contract of Env, tested with every implementation: the machine (in a temporary directory),
// the simulated device, and the simulated device with a reserve.
#include <algorithm>
#include <memory>
#include <string>

#include "store/base/random.h"
#include "store/env/files.h"
#include "store/env/posix_env.h"
#include "store/env/reserve_env.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs {
namespace {

struct OnTheMachine {
  testing::TemporaryDirectory directory;
  std::unique_ptr<Env> owned = NewPosixEnv();
  Env& env() { return *owned; }
  std::string Path(const std::string& name) { return directory / name; }
};

struct Simulated {
  SimEnv sim;
  Simulated() { REQUIRE_OK(sim.CreateDirectory("/top")); }
  Env& env() { return sim; }
  std::string Path(const std::string& name) { return "/top/" + name; }
};

struct WithReserve {
  Simulated below;
  std::unique_ptr<SpaceReserve> reserve;
  std::unique_ptr<ReserveEnv> reserve_env;
  WithReserve() {
    auto opened = SpaceReserve::Open(below.env(), {.store = "/",
                                                   .directory = "/reserve",
                                                   .piece_bytes = 4096,
                                                   .pieces = 3,
                                                   .spare_bytes = 4096});
    REQUIRE_OK(opened);
    reserve = std::move(*opened);
    REQUIRE_OK(reserve->Fill());
    reserve_env = std::make_unique<ReserveEnv>(below.env(), *reserve);
  }
  Env& env() { return *reserve_env; }
  std::string Path(const std::string& name) { return below.Path(name); }
};

std::unique_ptr<File> Open(Env& env, const std::string& path, OpenMode mode) {
  auto file = env.OpenFile(path, {.mode = mode});
  REQUIRE_OK(file);
  return std::move(*file);
}

void Put(Env& env, const std::string& path, std::string_view text) {
  REQUIRE_OK(Open(env, path, OpenMode::kCreate)->Write(0, AsBytes(text)));
}

std::string Contents(Env& env, const std::string& path) {
  auto text = ReadWholeFile(env, path, 1 << 20);
  REQUIRE_OK(text);
  return *text;
}

std::string Names(Env& env, const std::string& path) {
  auto entries = env.ListDirectory(path);
  REQUIRE_OK(entries);
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : *entries) {
    names.push_back(entry.name + (entry.type == FileType::kDirectory ? "/" : ""));
  }
  std::sort(names.begin(), names.end());
  std::string joined;
  for (const std::string& name : names) joined += name + " ";
  return joined;
}

#define ENV_TEST(name) TEMPLATE_TEST_CASE(name, "[env]", OnTheMachine, Simulated, WithReserve)

ENV_TEST("written bytes are read back") {
  TestType at;
  auto file = Open(at.env(), at.Path("f"), OpenMode::kCreate);
  REQUIRE_OK(file->Write(0, AsBytes("hello, world")));
  REQUIRE_OK(file->Write(7, AsBytes("there")));
  REQUIRE(*file->Size() == 12);
  REQUIRE_OK(file->Close());
  REQUIRE(Contents(at.env(), at.Path("f")) == "hello, there");
}

ENV_TEST("a read that crosses the end is short, and a read after the end is empty") {
  TestType at;
  auto file = Open(at.env(), at.Path("f"), OpenMode::kCreate);
  REQUIRE_OK(file->Write(0, AsBytes("12345")));
  Bytes out(10);
  auto got = file->Read(3, out);
  REQUIRE_OK(got);
  REQUIRE(*got == 2);
  REQUIRE(AsText(ByteView(out).first(2)) == "45");
  got = file->Read(5, out);
  REQUIRE_OK(got);
  REQUIRE(*got == 0);
  got = file->Read(1 << 30, out);
  REQUIRE_OK(got);
  REQUIRE(*got == 0);
}

ENV_TEST("a write beyond the end leaves zeros in between") {
  TestType at;
  auto file = Open(at.env(), at.Path("f"), OpenMode::kCreate);
  REQUIRE_OK(file->Write(10'000, AsBytes("x")));
  REQUIRE(*file->Size() == 10'001);
  REQUIRE(Contents(at.env(), at.Path("f")) == std::string(10'000, '\0') + "x");
}

ENV_TEST("writes across page borders land where they belong") {
  TestType at;
  auto file = Open(at.env(), at.Path("f"), OpenMode::kCreate);
  std::string expected(50'000, '\0');
  Random random(7);
  for (int i = 0; i < 300; ++i) {
    Bytes data(random.Below(9'000));
    random.Fill(data);
    const uint64_t offset = random.Below(expected.size() - data.size());
    REQUIRE_OK(file->Write(offset, data));
    std::copy(data.begin(), data.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  expected.resize(*file->Size());
  REQUIRE(Contents(at.env(), at.Path("f")) == expected);
}

ENV_TEST("truncation removes bytes, and a file grows with zeros") {
  TestType at;
  auto file = Open(at.env(), at.Path("f"), OpenMode::kCreate);
  REQUIRE_OK(file->Write(0, AsBytes(std::string(10'000, 'a'))));
  REQUIRE_OK(file->Truncate(5'000));
  REQUIRE(*file->Size() == 5'000);
  REQUIRE_OK(file->Truncate(9'000));
  REQUIRE(Contents(at.env(), at.Path("f")) == std::string(5'000, 'a') + std::string(4'000, '\0'));
}

ENV_TEST("creating is exclusive") {
  TestType at;
  Put(at.env(), at.Path("f"), "first");
  REQUIRE_CODE(at.env().OpenFile(at.Path("f"), {.mode = OpenMode::kCreate}), kAlreadyExists);
  REQUIRE(Contents(at.env(), at.Path("f")) == "first");
  REQUIRE_CODE(at.env().CreateDirectory(at.Path("f")), kAlreadyExists);
}

ENV_TEST("a missing path cannot be opened, examined, listed, removed or renamed") {
  TestType at;
  Env& env = at.env();
  const std::string path = at.Path("nothing");
  REQUIRE_CODE(env.OpenFile(path, {.mode = OpenMode::kRead}), kNotFound);
  REQUIRE_CODE(env.OpenFile(path, {.mode = OpenMode::kReadWrite}), kNotFound);
  REQUIRE_CODE(env.GetFileInfo(path), kNotFound);
  REQUIRE_CODE(env.ListDirectory(path), kNotFound);
  REQUIRE_CODE(env.RemoveFile(path), kNotFound);
  REQUIRE_CODE(env.RemoveDirectory(path), kNotFound);
  REQUIRE_CODE(env.Rename(path, at.Path("other")), kNotFound);
  REQUIRE_CODE(env.SyncDirectory(path), kNotFound);
  REQUIRE_CODE(env.GetDiskSpace(path), kNotFound);
}

ENV_TEST("the parent must exist and be a directory") {
  TestType at;
  Env& env = at.env();
  Put(env, at.Path("file"), "");
  REQUIRE_CODE(env.OpenFile(at.Path("no/f"), {.mode = OpenMode::kCreate}), kNotFound);
  REQUIRE_CODE(env.CreateDirectory(at.Path("no/d")), kNotFound);
  REQUIRE_CODE(env.LockFile(at.Path("no/lock")), kNotFound);
  REQUIRE_CODE(env.OpenFile(at.Path("file/f"), {.mode = OpenMode::kCreate}), kNotADirectory);
  REQUIRE_CODE(env.CreateDirectory(at.Path("file/d")), kNotADirectory);
  REQUIRE_CODE(env.GetFileInfo(at.Path("file/d")), kNotADirectory);
}

ENV_TEST("files and directories are told apart") {
  TestType at;
  Env& env = at.env();
  Put(env, at.Path("file"), "123");
  REQUIRE_OK(env.CreateDirectory(at.Path("dir")));
  REQUIRE_CODE(env.OpenFile(at.Path("dir"), {.mode = OpenMode::kRead}), kIsADirectory);
  REQUIRE_CODE(env.OpenFile(at.Path("dir"), {.mode = OpenMode::kReadWrite}), kIsADirectory);
  REQUIRE_CODE(env.RemoveFile(at.Path("dir")), kIsADirectory);
  REQUIRE_CODE(env.RemoveDirectory(at.Path("file")), kNotADirectory);
  REQUIRE_CODE(env.ListDirectory(at.Path("file")), kNotADirectory);
  REQUIRE_CODE(env.SyncDirectory(at.Path("file")), kNotADirectory);
  REQUIRE_CODE(env.LockFile(at.Path("dir")), kIsADirectory);
  auto info = env.GetFileInfo(at.Path("file"));
  REQUIRE_OK(info);
  REQUIRE(info->type == FileType::kRegular);
  REQUIRE(info->size == 3);
  info = env.GetFileInfo(at.Path("dir"));
  REQUIRE_OK(info);
  REQUIRE(info->type == FileType::kDirectory);
}

ENV_TEST("a listing has every name once, without dots") {
  TestType at;
  Env& env = at.env();
  REQUIRE_OK(env.CreateDirectory(at.Path("dir")));
  REQUIRE(Names(env, at.Path("dir")).empty());
  Put(env, at.Path("dir/b"), "");
  Put(env, at.Path("dir/a"), "");
  REQUIRE_OK(env.CreateDirectory(at.Path("dir/c")));
  REQUIRE(Names(env, at.Path("dir")) == "a b c/ ");
}

ENV_TEST("a directory that is not empty is not removed") {
  TestType at;
  Env& env = at.env();
  REQUIRE_OK(env.CreateDirectory(at.Path("dir")));
  Put(env, at.Path("dir/f"), "");
  REQUIRE_CODE(env.RemoveDirectory(at.Path("dir")), kNotEmpty);
  REQUIRE_OK(env.RemoveFile(at.Path("dir/f")));
  REQUIRE_OK(env.RemoveDirectory(at.Path("dir")));
  REQUIRE_CODE(env.GetFileInfo(at.Path("dir")), kNotFound);
}

ENV_TEST("a rename replaces a file") {
  TestType at;
  Env& env = at.env();
  Put(env, at.Path("old"), "old");
  Put(env, at.Path("new"), "new");
  REQUIRE_OK(env.Rename(at.Path("new"), at.Path("old")));
  REQUIRE(Contents(env, at.Path("old")) == "new");
  REQUIRE_CODE(env.GetFileInfo(at.Path("new")), kNotFound);
}

ENV_TEST("a rename onto itself changes nothing") {
  TestType at;
  Put(at.env(), at.Path("f"), "text");
  REQUIRE_OK(at.env().Rename(at.Path("f"), at.Path("f")));
  REQUIRE(Contents(at.env(), at.Path("f")) == "text");
}

ENV_TEST("a rename moves a file to another directory, and a directory with its contents") {
  TestType at;
  Env& env = at.env();
  REQUIRE_OK(env.CreateDirectory(at.Path("a")));
  REQUIRE_OK(env.CreateDirectory(at.Path("b")));
  Put(env, at.Path("a/f"), "text");
  REQUIRE_OK(env.Rename(at.Path("a/f"), at.Path("b/g")));
  REQUIRE_OK(env.Rename(at.Path("b"), at.Path("c")));
  REQUIRE(Contents(env, at.Path("c/g")) == "text");
  REQUIRE(Names(env, at.Path("a")).empty());
}

ENV_TEST("a rename replaces neither a file by a directory nor a directory by a file") {
  TestType at;
  Env& env = at.env();
  Put(env, at.Path("file"), "");
  REQUIRE_OK(env.CreateDirectory(at.Path("dir")));
  REQUIRE_OK(env.CreateDirectory(at.Path("full")));
  Put(env, at.Path("full/f"), "");
  REQUIRE_CODE(env.Rename(at.Path("file"), at.Path("dir")), kIsADirectory);
  REQUIRE_CODE(env.Rename(at.Path("dir"), at.Path("file")), kNotADirectory);
  REQUIRE_CODE(env.Rename(at.Path("dir"), at.Path("full")), kNotEmpty);
  REQUIRE_OK(env.Rename(at.Path("full"), at.Path("dir")));
  REQUIRE(Names(env, at.Path("dir")) == "f ");
}

ENV_TEST("a removed file stays readable and writable while it is open") {
  TestType at;
  Env& env = at.env();
  auto file = Open(env, at.Path("f"), OpenMode::kCreate);
  REQUIRE_OK(file->Write(0, AsBytes("still")));
  REQUIRE_OK(env.RemoveFile(at.Path("f")));
  REQUIRE_OK(file->Write(5, AsBytes(" here")));
  std::string text(10, '\0');
  REQUIRE_OK(ReadExactly(*file, 0, {reinterpret_cast<uint8_t*>(text.data()), text.size()}));
  REQUIRE(text == "still here");
  REQUIRE_OK(file->Sync());
  REQUIRE_CODE(env.GetFileInfo(at.Path("f")), kNotFound);
}

ENV_TEST("a file opened for reading refuses to be changed") {
  TestType at;
  Put(at.env(), at.Path("f"), "text");
  auto file = Open(at.env(), at.Path("f"), OpenMode::kRead);
  REQUIRE_CODE(file->Write(0, AsBytes("x")), kInvalidArgument);
  REQUIRE_CODE(file->Truncate(0), kInvalidArgument);
  REQUIRE(Contents(at.env(), at.Path("f")) == "text");
}

ENV_TEST("a closed file refuses every call") {
  TestType at;
  auto file = Open(at.env(), at.Path("f"), OpenMode::kCreate);
  REQUIRE_OK(file->Close());
  Bytes out(1);
  REQUIRE_CODE(file->Read(0, out), kInvalidArgument);
  REQUIRE_CODE(file->Write(0, AsBytes("x")), kInvalidArgument);
  REQUIRE_CODE(file->Sync(), kInvalidArgument);
  REQUIRE_CODE(file->Size(), kInvalidArgument);
  REQUIRE_CODE(file->Close(), kInvalidArgument);
}

ENV_TEST("a lock excludes a second holder in the same process until it is released") {
  TestType at;
  Env& env = at.env();
  auto first = env.LockFile(at.Path("lock"));
  REQUIRE_OK(first);
  auto second = env.LockFile(at.Path("lock"));
  REQUIRE_CODE(second, kInUse);
  REQUIRE(second.status().path() == at.Path("lock"));
  auto other = env.LockFile(at.Path("other"));
  REQUIRE_OK(other);
  first->reset();
  REQUIRE_OK(env.LockFile(at.Path("lock")));
}

ENV_TEST("preallocation claims space and leaves the size alone") {
  TestType at;
  auto file = Open(at.env(), at.Path("f"), OpenMode::kCreate);
  Status claimed = file->Preallocate(1 << 20);
  if (claimed.Is(StatusCode::kUnsupported)) return;  // the contract allows this answer
  REQUIRE_OK(claimed);
  REQUIRE(*file->Size() == 0);
  auto info = at.env().GetFileInfo(at.Path("f"));
  REQUIRE_OK(info);
  REQUIRE(info->allocated_bytes >= 1 << 20);
}

ENV_TEST("direct access transfers whole pages and refuses anything else") {
  TestType at;
  auto file = at.env().OpenFile(at.Path("f"), {.mode = OpenMode::kCreate, .direct = true});
  if (file.status().Is(StatusCode::kUnsupported)) {
    // The contract allows this answer, but then the call must leave no file behind.
    REQUIRE_CODE(at.env().GetFileInfo(at.Path("f")), kNotFound);
    return;
  }
  REQUIRE_OK(file);
  alignas(4096) static uint8_t pages[2 * 4096];
  std::fill(std::begin(pages), std::end(pages), 'p');
  REQUIRE_OK((*file)->Write(4096, pages));
  std::fill(std::begin(pages), std::end(pages), 0);
  auto got = (*file)->Read(8192, pages);
  REQUIRE_OK(got);
  REQUIRE(*got == 4096);
  REQUIRE(std::count(pages, pages + 4096, 'p') == 4096);
  REQUIRE_CODE((*file)->Write(100, MutableByteView(pages).first(4096)), kInvalidArgument);
  REQUIRE_CODE((*file)->Write(0, MutableByteView(pages).first(100)), kInvalidArgument);
}

ENV_TEST("a direct read of a file that ends within a page is short") {
  TestType at;
  Put(at.env(), at.Path("f"), std::string(5'000, 'q'));
  auto file = at.env().OpenFile(at.Path("f"), {.mode = OpenMode::kRead, .direct = true});
  if (file.status().Is(StatusCode::kUnsupported)) return;  // the contract allows this answer
  REQUIRE_OK(file);
  alignas(4096) static uint8_t pages[4 * 4096];
  auto got = (*file)->Read(0, pages);
  REQUIRE_OK(got);
  REQUIRE(*got == 5'000);
}

ENV_TEST("the disk's space is within its bounds") {
  TestType at;
  auto space = at.env().GetDiskSpace(at.Path("."));
  REQUIRE_OK(space);
  REQUIRE(space->total_bytes > 0);
  REQUIRE(space->free_bytes <= space->total_bytes);
  REQUIRE(space->available_bytes <= space->free_bytes);
}

ENV_TEST("random bytes fill the whole buffer and differ from call to call") {
  TestType at;
  Bytes first(1'000), second(1'000);
  REQUIRE_OK(at.env().FillRandom(first));
  REQUIRE_OK(at.env().FillRandom(second));
  REQUIRE(first != second);
  // 32 random bytes are practically never all zero.
  REQUIRE(std::count(first.end() - 32, first.end(), 0) < 32);
}

ENV_TEST("time does not run backwards") {
  TestType at;
  const int64_t before = at.env().MonotonicNanoseconds();
  REQUIRE(at.env().MonotonicNanoseconds() >= before);
  REQUIRE(at.env().NowNanoseconds() > 1'600'000'000'000'000'000);
}

ENV_TEST("an error names the path, the offset and the cause") {
  TestType at;
  Env& env = at.env();
  const std::string path = at.Path("nothing");
  for (const Status& status :
       {env.OpenFile(path, {}).status(), env.RemoveFile(path), env.RemoveDirectory(path),
        env.Rename(path, at.Path("x")), env.SyncDirectory(path), env.GetFileInfo(path).status(),
        env.ListDirectory(path).status(), env.CreateDirectory(path + "/x")}) {
    INFO(status.ToString());
    REQUIRE(status.path().substr(0, path.size()) == path);
    REQUIRE_FALSE(status.cause().empty());
  }
  Put(env, at.Path("f"), "text");
  auto file = Open(env, at.Path("f"), OpenMode::kRead);
  Status refused = file->Write(42, AsBytes("x"));
  REQUIRE(refused.path() == at.Path("f"));
  REQUIRE(refused.offset() == 42);
  REQUIRE(file->path() == at.Path("f"));
}

ENV_TEST("a name of more than 255 bytes is too long") {
  TestType at;
  REQUIRE_CODE(at.env().CreateDirectory(at.Path(std::string(256, 'n'))), kNameTooLong);
  REQUIRE_OK(at.env().CreateDirectory(at.Path(std::string(255, 'n'))));
}

}  // namespace
}  // namespace siltfs
