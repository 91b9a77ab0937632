#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

struct WithFile {
  SimEnv env;
  std::unique_ptr<File> file;
  WithFile() {
    auto created = env.OpenFile("/f", {.mode = OpenMode::kCreate});
    REQUIRE_OK(created);
    file = std::move(*created);
    REQUIRE_OK(file->Write(0, AsBytes("text")));
  }
  std::string Contents() {
    auto text = ReadWholeFile(env, "/f", 1 << 20);
    REQUIRE_OK(text);
    return *text;
  }
};

TEST_CASE("every kind of call can be made to fail, and then changes nothing") {
  WithFile at;
  SimEnv& env = at.env;
  Bytes out(1);
  auto fail = [&](SimCall call) { env.FailCall({.calls = call, .code = StatusCode::kNoSpace}); };
  fail(SimCall::kRead);
  REQUIRE_CODE(at.file->Read(0, out), kNoSpace);
  fail(SimCall::kWrite);
  REQUIRE_CODE(at.file->Write(0, AsBytes("X")), kNoSpace);
  fail(SimCall::kSync);
  REQUIRE_CODE(at.file->Sync(), kNoSpace);
  fail(SimCall::kTruncate);
  REQUIRE_CODE(at.file->Truncate(0), kNoSpace);
  fail(SimCall::kPreallocate);
  REQUIRE_CODE(at.file->Preallocate(10), kNoSpace);
  fail(SimCall::kOpen);
  REQUIRE_CODE(env.OpenFile("/f", {}), kNoSpace);
  fail(SimCall::kCreate);
  REQUIRE_CODE(env.OpenFile("/g", {.mode = OpenMode::kCreate}), kNoSpace);
  fail(SimCall::kCreate);
  REQUIRE_CODE(env.CreateDirectory("/d"), kNoSpace);
  fail(SimCall::kCreate);
  REQUIRE_CODE(env.LockFile("/lock"), kNoSpace);
  fail(SimCall::kRename);
  REQUIRE_CODE(env.Rename("/f", "/g"), kNoSpace);
  fail(SimCall::kRemove);
  REQUIRE_CODE(env.RemoveFile("/f"), kNoSpace);
  fail(SimCall::kSyncDirectory);
  REQUIRE_CODE(env.SyncDirectory("/"), kNoSpace);
  fail(SimCall::kList);
  REQUIRE_CODE(env.ListDirectory("/"), kNoSpace);
  fail(SimCall::kInfo);
  REQUIRE_CODE(env.GetFileInfo("/f"), kNoSpace);
  fail(SimCall::kInfo);
  REQUIRE_CODE(at.file->Size(), kNoSpace);
  REQUIRE(at.Contents() == "text");
  REQUIRE(env.ListDirectory("/").value().size() == 1);
  env.PowerCut();
  REQUIRE(env.ListDirectory("/").value().empty());  // the failed directory sync has synced nothing
}

TEST_CASE("the nth matching call fails, once") {
  WithFile at;
  at.env.FailCall({.calls = SimCall::kWrite | SimCall::kTruncate, .nth = 3});
  REQUIRE_OK(at.file->Write(0, AsBytes("1")));
  REQUIRE_OK(at.file->Sync());
  REQUIRE_OK(at.file->Truncate(4));
  REQUIRE_CODE(at.file->Write(0, AsBytes("3")), kIoError);
  REQUIRE_OK(at.file->Write(1, AsBytes("4")));
  REQUIRE(at.Contents() == "14xt");
}

TEST_CASE("a sticky fault persists until it is cleared") {
  WithFile at;
  at.env.FailCall({.calls = SimCall::kSync, .nth = 2, .sticky = true});
  REQUIRE_OK(at.file->Sync());
  REQUIRE_CODE(at.file->Sync(), kIoError);
  REQUIRE_CODE(at.file->Sync(), kIoError);
  at.env.ClearFaults();
  REQUIRE_OK(at.file->Sync());
}

TEST_CASE("a fault can be limited to some paths") {
  WithFile at;
  at.env.FailCall({.path_part = "other"});
  REQUIRE_OK(at.file->Write(0, AsBytes("x")));
  REQUIRE_CODE(at.env.OpenFile("/another", {.mode = OpenMode::kCreate}), kIoError);
}

TEST_CASE("several faults count calls independently") {
  WithFile at;
  at.env.FailCall({.calls = SimCall::kWrite, .nth = 1});
  at.env.FailCall({.calls = SimCall::kWrite, .nth = 2, .code = StatusCode::kNoSpace});
  REQUIRE_CODE(at.file->Write(0, AsBytes("x")), kIoError);
  REQUIRE_CODE(at.file->Write(0, AsBytes("x")), kNoSpace);
  REQUIRE_OK(at.file->Write(0, AsBytes("x")));
}

TEST_CASE("a short write writes its first bytes and fails") {
  WithFile at;
  at.env.FailCall({.calls = SimCall::kWrite, .bytes_written = 2});
  Status status = at.file->Write(1, AsBytes("XYZ"));
  REQUIRE_CODE(status, kIoError);
  REQUIRE(status.path() == "/f");
  REQUIRE(status.offset() == 1);
  REQUIRE(at.Contents() == "tXYt");
  REQUIRE_OK(at.file->Write(0, AsBytes("")));
  REQUIRE(at.Contents() == "tXYt");
}

TEST_CASE("an injected failure names the path and the offset") {
  WithFile at;
  at.env.FailCall({.calls = SimCall::kAny, .sticky = true});
  Bytes out(1);
  REQUIRE(at.file->Read(7, out).status().ToString() == "/f: a fault was injected at offset 7");
  REQUIRE(at.env.Rename("/f", "/g").path() == "/f");
  REQUIRE(at.env.SyncDirectory("/").path() == "/");
}

TEST_CASE("calls are counted by kind, failed ones included") {
  WithFile at;
  SimEnv& env = at.env;
  REQUIRE(env.Calls(SimCall::kCreate) == 1);
  REQUIRE(env.Calls(SimCall::kWrite) == 1);
  REQUIRE(env.Calls(SimCall::kMutating) == 2);
  REQUIRE(env.Calls(SimCall::kRead) == 0);
  env.FailCall({.calls = SimCall::kSync});
  REQUIRE_CODE(at.file->Sync(), kIoError);
  REQUIRE(env.Calls(SimCall::kSync) == 1);
  REQUIRE_CODE(env.OpenFile("/nothing", {}), kNotFound);
  REQUIRE(env.Calls(SimCall::kOpen) == 1);
  REQUIRE(env.Calls(SimCall::kAny) == 4);
}

TEST_CASE("a fault and a cut at the same call cut the power") {
  WithFile at;
  at.env.FailCall({.calls = SimCall::kWrite});
  at.env.CutAtCall(1);
  REQUIRE_CODE(at.file->Write(0, AsBytes("X")), kIoError);
  REQUIRE_FALSE(at.env.PowerIsOn());
}

TEST_CASE("the clocks do not advance by themselves") {
  SimEnv env;
  const int64_t now = env.NowNanoseconds(), then = env.MonotonicNanoseconds();
  REQUIRE(env.NowNanoseconds() == now);
  env.AdvanceClock(5);
  REQUIRE(env.NowNanoseconds() == now + 5);
  REQUIRE(env.MonotonicNanoseconds() == then + 5);
  env.SetClock(42);
  REQUIRE(env.NowNanoseconds() == 42);
  REQUIRE(env.MonotonicNanoseconds() == then + 5);
}

TEST_CASE("equal seeds draw equal bytes, a reboot does not repeat them") {
  SimEnv one(9), other(9);
  Bytes a(32), b(32), c(32);
  REQUIRE_OK(one.FillRandom(a));
  REQUIRE_OK(other.FillRandom(b));
  REQUIRE(a == b);
  one.PowerCut();
  REQUIRE_OK(one.FillRandom(c));
  REQUIRE(c != a);
}

TEST_CASE("dots and repeated slashes in paths are resolved") {
  WithFile at;
  REQUIRE_OK(at.env.CreateDirectory("/d"));
  for (const char* path : {"f", "//f", "/./f", "/d/../f", "/../f", "d/..//./f"}) {
    INFO(path);
    REQUIRE_OK(at.env.GetFileInfo(path));
  }
  REQUIRE_CODE(at.env.GetFileInfo(""), kNotFound);
}

TEST_CASE("moving a directory to another directory is refused") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/a"));
  REQUIRE_OK(env.CreateDirectory("/b"));
  REQUIRE_CODE(env.Rename("/a", "/b/a"), kUnsupported);
}

}  // namespace
}  // namespace siltfs
