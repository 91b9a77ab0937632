// Whole stores in a bucket: another machine takes over, and the first one may go on.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "store/bucket/bucket_names.h"
#include "tests/fs/shipping/site.h"

namespace siltfs::testing {
namespace {

TEST_CASE("store in a bucket: segments of a writer that was fenced are removed") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make(16u << 10);
  REQUIRE_OK(site.Open());
  FileHistory history(3);
  for (int i = 0; i < 3; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.Ship());
  const Files shipped = history.states.back();
  const uint32_t epoch = site.session->shipper().epoch();
  const std::vector<std::string> before = objects.Keys();
  const auto of_fenced_writer = [&] {
    std::vector<std::string> keys;
    for (const std::string& key : objects.Keys()) {
      const auto content = ParseSegmentObjectKey(key);
      const bool is_new = std::ranges::find(before, key) == before.end();
      if (content && content->epoch() == epoch && is_new) keys.push_back(key);
    }
    return keys;
  };
  Site other(objects, 2);
  REQUIRE_OK(other.Restore());
  for (int i = 0; i < 10; ++i) REQUIRE_OK(history.Step(*site.fs));
  CHECK(!site.session->bucket()->GetStatus().uploads.waiting == 0);
  // Between the restore and the first mount, and after it.
  REQUIRE_OK(site.session->bucket()->RunBackground());
  CHECK_FALSE(of_fenced_writer().empty());
  REQUIRE_OK(other.Open());
  REQUIRE(other.ReadAll() == shipped);
  other.Crash();
  CHECK(!site.Ship().ok());
  REQUIRE_OK(other.Open());
  FileHistory more(4);
  more.states = {shipped};
  for (int i = 0; i < 10; ++i) REQUIRE_OK(more.Step(*other.fs));
  other.Close();
  other.Check();
  REQUIRE_OK(other.Open());
  REQUIRE(other.ReadAll() == more.states.back());
  other.Close();
  CHECK(of_fenced_writer().empty());
}

// The first writer is stopped after it has announced a replacement, and goes on after the second
// one has taken over.
TEST_CASE("store in a bucket: a replacement that a fenced writer puts late does not win") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make(16u << 10);
  REQUIRE_OK(site.Open());
  FileHistory history(5);
  for (int i = 0; i < 12; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.Ship());
  const uint64_t before = objects.Calls(ObjectCall::kPut);
  objects.FailCall({.call = ObjectCall::kPut, .permanent = true, .key_part = "segments/"});
  Maintain(*site.fs, 0).IgnoreError("the next replacement waits for the bucket");
  REQUIRE(objects.Calls(ObjectCall::kPut) > before);
  objects.ClearFaults();
  const uint64_t waiting = site.session->bucket()->GetStatus().uploads.waiting;
  REQUIRE(waiting > 0);

  Site other(objects, 2);
  REQUIRE_OK(other.Restore());
  REQUIRE_OK(other.Open());
  REQUIRE(other.ReadAll() == history.states.back());
  REQUIRE_OK(other.Ship());
  REQUIRE_OK(site.session->bucket()->RunBackground());
  CHECK(site.session->bucket()->GetStatus().uploads.waiting < waiting);

  Site third(objects, 3);
  REQUIRE_OK(third.Restore());
  REQUIRE_OK(third.Open());
  REQUIRE(third.ReadAll() == history.states.back());
  third.Close();
  third.Check();
  // The second machine, which lists the bucket again.
  CHECK(!history.Step(*other.fs).ok() + !other.Ship().ok() > 0);
  other.Crash();
}

TEST_CASE("store in a bucket: a takeover fences a writer that goes on during the restore") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make();
  REQUIRE_OK(site.Open());
  FileHistory history(6);
  for (int i = 0; i < 5; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.Ship());
  const Files shipped = history.states.back();
  Site other(objects, 2);
  const auto restore = [&other, &objects](bool take_over) {
    RestoreStoreOptions options{"/store", "/cache", {}};
    if (take_over) options.take_over = other.shipping.writer;
    other.env = std::make_unique<SimEnv>(take_over ? 11 : 12);
    return RestoreStore(*other.env, objects, options).status();
  };
  REQUIRE_OK(restore(false));
  REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.Ship());
  CHECK(other.Open().Is(StatusCode::kStale));
  other.Crash();

  const Files later = history.states.back();
  REQUIRE_OK(restore(true));
  CHECK(!history.Step(*site.fs).ok() + !site.Ship().ok() > 0);
  REQUIRE_OK(other.Open());
  CHECK(other.ReadAll() == later);
  other.Close();
  other.Check();
}

TEST_CASE("store in a bucket: of two machines that may take over, the second asks again") {
  std::function<void()> before_epoch;
  MemoryObjectStore objects({.wait = [&](ObjectCall call, const std::string& key, auto) {
    if (call == ObjectCall::kPut && key.starts_with(kLogPrefix) && before_epoch)
      std::exchange(before_epoch, nullptr)();
  }});
  Site site(objects, 1);
  site.Make();
  REQUIRE_OK(site.Open());
  FileHistory history(8);
  REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.Ship());
  Site fast(objects, 2);
  Site slow(objects, 3);
  std::vector<std::string> asked;
  const auto restore = [&](Site& machine) {
    RestoreStoreOptions options{"/store", "/cache", {}};
    options.take_over = machine.shipping.writer;
    // The lease of the first machine has ended, and that of the fast one has not.
    options.may_follow = [&](const LogEnd& end) {
      asked.push_back(machine.shipping.writer.host + " after " + end.writer.host);
      return end.writer == site.shipping.writer ? Status::Ok()
                                                : Status(StatusCode::kInUse, "it is alive");
    };
    machine.env = std::make_unique<SimEnv>(machine.shipping.writer.id[0]);
    return RestoreStore(*machine.env, objects, options).status();
  };
  before_epoch = [&] { REQUIRE_OK(restore(fast)); };
  REQUIRE_CODE(restore(slow), kInUse);
  CHECK(asked ==
        std::vector<std::string>{"host3 after host1", "host2 after host1", "host3 after host2"});
  REQUIRE_OK(fast.Open());
  CHECK(fast.ReadAll() == history.states.back());
  REQUIRE_OK(history.Step(*fast.fs));
  REQUIRE_OK(fast.Ship());
  fast.Close();
  fast.Check();
}

}  // namespace
}  // namespace siltfs::testing
