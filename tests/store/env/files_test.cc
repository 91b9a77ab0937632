#include "store/env/files.h"

#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

TEST_CASE("paths are joined with one slash") {
  REQUIRE(JoinPath("/a", "b") == "/a/b");
  REQUIRE(JoinPath("/a/", "b") == "/a/b");
  REQUIRE(JoinPath("/", "b") == "/b");
  REQUIRE(JoinPath("", "b") == "b");
}

TEST_CASE("a whole file beyond the limit is not read") {
  SimEnv env;
  REQUIRE_OK(ReplaceFile(env, "/f", AsBytes("12345")));
  REQUIRE(*ReadWholeFile(env, "/f", 5) == "12345");
  auto refused = ReadWholeFile(env, "/f", 4);
  REQUIRE_CODE(refused, kFileTooLarge);
  REQUIRE(refused.status().path() == "/f");
}

TEST_CASE("a file or link in place of an expendable directory is removed") {
  SimEnv env;
  REQUIRE(ListOrClear(env, "/d").status().Is(StatusCode::kNotFound));
  REQUIRE_OK(env.OpenFile("/d", {.mode = OpenMode::kCreate}));
  REQUIRE(ListOrClear(env, "/d").status().Is(StatusCode::kNotFound));
  REQUIRE(env.GetFileInfo("/d").status().Is(StatusCode::kNotFound));
  REQUIRE_OK(env.CreateDirectory("/d"));
  REQUIRE_OK(env.OpenFile("/d/f", {.mode = OpenMode::kCreate}));
  const auto entries = ListOrClear(env, "/d");
  REQUIRE_OK(entries);
  REQUIRE(entries->size() == 1);
}

TEST_CASE("a file that is too short for an exact read is damaged") {
  SimEnv env;
  REQUIRE_OK(ReplaceFile(env, "/f", AsBytes("12345")));
  auto file = env.OpenFile("/f", {});
  REQUIRE_OK(file);
  Bytes out(4);
  REQUIRE_OK(ReadExactly(**file, 1, out));
  REQUIRE(AsText(out) == "2345");
  Status status = ReadExactly(**file, 2, out);
  REQUIRE_CODE(status, kCorruption);
  REQUIRE(status.path() == "/f");
  REQUIRE(status.offset() == 2);
}

TEST_CASE("after a power cut at any call a replaced file is the old one or the new one, complete") {
  using Unsynced = CrashPolicy::Unsynced;
  const std::string old_text(10'000, 'o'), new_text(7'000, 'n');
  int old_seen = 0, new_seen = 0;
  for (Unsynced unsynced :
       {Unsynced::kDrop, Unsynced::kKeep, Unsynced::kPrefix, Unsynced::kSubset}) {
    bool finished = false;
    for (uint64_t nth = 1; !finished; ++nth) {
      SimEnv env;
      REQUIRE_OK(env.CreateDirectory("/d"));
      REQUIRE_OK(env.SyncDirectory("/"));
      REQUIRE_OK(ReplaceFile(env, "/d/f", AsBytes(old_text)));
      env.CutAtCall(nth);
      finished = ReplaceFile(env, "/d/f", AsBytes(new_text)).ok();
      env.Reboot({unsynced, nth});
      auto text = ReadWholeFile(env, "/d/f", 1 << 20);
      REQUIRE_OK(text);
      if (finished) REQUIRE(*text == new_text);
      REQUIRE((*text == old_text || *text == new_text));
      ++(*text == old_text ? old_seen : new_seen);
      // Files left over from a crash are no obstacle.
      REQUIRE_OK(ReplaceFile(env, "/d/f", AsBytes("again")));
    }
  }
  REQUIRE(old_seen > 0);
  REQUIRE(new_seen > 0);
}

TEST_CASE(
    "every failing call of a replacement is reported and leaves the old file or the new one") {
  bool finished = false;
  for (uint64_t nth = 1; !finished; ++nth) {
    SimEnv env;
    REQUIRE_OK(ReplaceFile(env, "/f", AsBytes("old")));
    env.FailCall({.calls = SimCall::kMutating | SimCall::kOpen, .nth = nth, .bytes_written = 1});
    const uint64_t before = env.Calls(SimCall::kAny);
    Status status = ReplaceFile(env, "/f", AsBytes("new"));
    finished = env.Calls(SimCall::kAny) - before < nth;
    REQUIRE(status.ok() == finished);
    env.ClearFaults();
    auto text = ReadWholeFile(env, "/f", 100);
    REQUIRE_OK(text);
    REQUIRE((*text == "old" || *text == "new"));
  }
}

}  // namespace
}  // namespace siltfs
