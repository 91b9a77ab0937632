// Whole stores in a bucket: the machine is lost, and another one restores the store.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fs/interface/snapshots.h"
#include "fs/repair/repair_store.h"
#include "tests/fs/shipping/site.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

TEST_CASE("store in a bucket: another machine restores all files") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make();
  REQUIRE_OK(site.Open());
  FileHistory history(1);
  for (int i = 0; i < 20; ++i) REQUIRE_OK(history.Step(*site.fs));
  const bool closed = GENERATE(false, true);
  if (closed) {
    site.Close();
  } else {
    REQUIRE_OK(site.Ship());
  }
  Site other(objects, 2);
  REQUIRE_OK(other.Restore());
  REQUIRE_OK(other.Open());
  CHECK(other.ReadAll() == history.states.back());
  for (int i = 0; i < 5; ++i) REQUIRE_OK(history.Step(*other.fs));
  other.Close();
  other.Check();
  // The first machine notices.
  if (!closed) CHECK(!history.Step(*site.fs).ok() + !site.Ship().ok() > 0);
  site.Crash();
  CHECK(site.Open().Is(StatusCode::kStale));
}

TEST_CASE("store in a bucket: a directory with a store is left alone, an interrupted restore not") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make();
  REQUIRE_OK(site.Open());
  FileHistory history(2);
  REQUIRE_OK(history.Step(*site.fs));
  site.Close();
  CHECK(site.RestoreHere().status().Is(StatusCode::kAlreadyExists));

  Site other(objects, 2);
  REQUIRE_OK(other.env->CreateDirectory("/store"));
  REQUIRE_OK(other.env->CreateDirectory("/store/meta"));
  CHECK(other.RestoreHere().status().Is(StatusCode::kNotEmpty));

  Site third(objects, 3);
  for (uint64_t call = 1;; call += 7 * SanitizedStep()) {
    third.env = std::make_unique<SimEnv>(call);
    third.env->CutAtCall(call);
    const auto restored = third.RestoreHere();
    const bool cut = !third.env->PowerIsOn();
    third.env->Reboot({CrashPolicy::Unsynced::kSubset, call});
    if (!restored.ok()) {
      const auto again = third.RestoreHere();
      if (!again.status().Is(StatusCode::kAlreadyExists)) REQUIRE_OK(again);
    }
    REQUIRE_OK(third.Open());
    REQUIRE(third.ReadAll() == history.states.back());
    third.Crash();
    if (!cut) break;
  }
}

TEST_CASE("store in a bucket: the disk is lost at random points") {
  const bool wait_for_bucket = GENERATE(false, true);
  const uint64_t rounds = kIsSanitized ? 10 : 60;
  for (uint64_t seed = 1; seed <= rounds; ++seed) {
    INFO("seed " << seed);
    MemoryObjectStore objects;
    Random random(seed);
    auto site = std::make_unique<Site>(objects, 1);
    site->shipping.wait_for_bucket = wait_for_bucket;
    site->shipping.checkpoint_bytes = 20000;
    site->shipping.queue_bytes = random.Below(2) == 0 ? 3000 : 1u << 20;
    site->Make();
    REQUIRE_OK(site->Open());
    FileHistory history(seed);
    REQUIRE_OK(site->Ship());
    size_t shipped = 0;
    const uint64_t steps = random.Below(40);
    for (uint64_t i = 0; i < steps; ++i) {
      REQUIRE_OK(history.Step(*site->fs));
      if (random.Below(4) == 0) REQUIRE_OK(Maintain(*site->fs, random.Below(3)));
      if (random.Below(4) == 0) REQUIRE_OK(site->Ship());
      if (random.Below(10) == 0) {
        site->Crash();
        site->env->PowerCut({CrashPolicy::Unsynced::kSubset, random.Below(1000)});
        REQUIRE_OK(site->Open());
      }
      // Each step ends with a sync.
      if (wait_for_bucket || site->session->lag().commits == 0) shipped = history.last();
    }
    site->Crash();
    auto other = std::make_unique<Site>(objects, 2);
    REQUIRE_OK(other->Restore());
    REQUIRE_OK(other->Open());
    const Files files = other->ReadAll();
    REQUIRE(history.Has(files, shipped));
    FileHistory more(seed + 1000);
    more.states = {files};
    for (int i = 0; i < 5; ++i) REQUIRE_OK(more.Step(*other->fs));
    REQUIRE_OK(Maintain(*other->fs, 0));
    other->Close();
    other->Check();
    Site third(objects, 3);
    REQUIRE_OK(third.Restore());
    REQUIRE_OK(third.Open());
    REQUIRE(third.ReadAll() == more.states.back());
    third.Close();
    third.Check();
  }
}

TEST_CASE("store in a bucket: after a power cut at any call, the machine goes on, or another one") {
  for (uint64_t call = 1;; call += 3 * SanitizedStep()) {
    INFO("call " << call);
    MemoryObjectStore objects;
    Site site(objects, 1);
    site.Make();
    REQUIRE_OK(site.Open());
    FileHistory history(call);
    for (int i = 0; i < 4; ++i) REQUIRE_OK(history.Step(*site.fs));
    REQUIRE_OK(site.Ship());
    size_t shipped = history.last();
    size_t synced = history.last();
    site.env->CutAtCall(call);
    for (int i = 0; i < 6; ++i) {
      if (!history.Step(*site.fs).ok()) break;
      synced = history.last();
      if (i == 3) Maintain(*site.fs, 0).IgnoreError("the power may be off");
      if (i % 2 == 1 && site.Ship().ok() && site.session->lag().commits == 0)
        shipped = history.last();
    }
    const bool cut = !site.env->PowerIsOn();
    site.Crash();
    const auto fork = objects.Fork();
    Site other(*fork, 2);
    REQUIRE_OK(other.Restore());
    REQUIRE_OK(other.Open());
    REQUIRE(history.Has(other.ReadAll(), shipped));
    other.Close();
    other.Check();
    site.env->Reboot({CrashPolicy::Unsynced::kSubset, call});
    REQUIRE_OK(site.Open());
    const Files files = site.ReadAll();
    REQUIRE(history.Has(files, synced));
    site.Close();
    site.Check();
    Site third(objects, 3);
    REQUIRE_OK(third.Restore());
    REQUIRE_OK(third.Open());
    REQUIRE(third.ReadAll() == files);
    third.Crash();
    if (!cut) break;
  }
}

TEST_CASE("store in a bucket: segments that are ahead of the log in the bucket do no harm") {
  const bool maintain = GENERATE(false, true);
  for (uint64_t seed = 1; seed <= (kIsSanitized ? 4 : 25); ++seed) {
    INFO("seed " << seed);
    MemoryObjectStore objects;
    Site site(objects, 1);
    site.Make((16u << 10) << seed % 5);
    REQUIRE_OK(site.Open());
    FileHistory history(seed);
    for (uint64_t i = 0; i < seed % 7 + 1; ++i) REQUIRE_OK(history.Step(*site.fs));
    REQUIRE_OK(site.Ship());
    const Files shipped = history.states.back();
    if (seed % 3 == 0) {  // a new epoch, of which the bucket gets no commits
      site.Close();
      REQUIRE_OK(site.Open());
    }
    // Segments and tails reach the bucket, commits do not.
    objects.FailCall({.call = ObjectCall::kPut, .permanent = true, .key_part = "log/"});
    for (uint64_t i = 0; i < 3 + seed % 4 * 8; ++i) {
      REQUIRE_OK(history.Step(*site.fs));
      // The first object that fails has several commits. Then the tails have blocks that name
      // commits which the bucket does not have.
      if (i >= 2) CHECK(!site.Ship().ok());
      if (maintain) Maintain(*site.fs, i % 5).IgnoreError("they wait for the bucket");
      // The upload threads do not wait for the log.
      site.session->bucket()->RunBackground().IgnoreError("it may have nothing to do");
    }
    CHECK(site.session->lag().commits > 0);
    CHECK(site.session->lag().last_error.find("log/") != std::string::npos);
    objects.ClearFaults();
    const auto fork = objects.Fork();
    Site other(*fork, 2);
    REQUIRE_OK(other.Restore());
    REQUIRE_OK(other.Open());
    REQUIRE(other.ReadAll() == shipped);
    // The first machine, which does not know it yet, puts its segments late.
    site.session->bucket()->RunBackground().IgnoreError("it may have nothing to do");
    FileHistory more(seed + 1000);
    more.states = {shipped};
    for (int i = 0; i < 4; ++i) REQUIRE_OK(more.Step(*other.fs));
    other.Crash();
    other.env->PowerCut();
    REQUIRE_OK(other.Open());
    REQUIRE(other.ReadAll() == more.states.back());
    REQUIRE_OK(Maintain(*other.fs, 0));
    REQUIRE_OK(Maintain(*other.fs, 1));
    other.Close();
    other.Check();
    REQUIRE_OK(other.Open());
    REQUIRE(other.ReadAll() == more.states.back());
    other.Close();
    // The first machine has lost nothing.
    REQUIRE(site.ReadAll() == history.states.back());
    REQUIRE_OK(site.Ship());
    site.Close();
    site.Check();
  }
}

TEST_CASE("store in a bucket: a tail whose answer was lost is put again with the same bytes") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make();
  REQUIRE_OK(site.Open());
  FileHistory history(7);
  REQUIRE_OK(history.Step(*site.fs));
  const auto effect = GENERATE(ObjectFault::Effect::kNone, ObjectFault::Effect::kAnswerLost);
  objects.FailCall({.call = ObjectCall::kPut, .effect = effect, .key_part = "tails/"});
  CHECK(!site.Ship().ok());
  const auto tails = [&objects] {
    std::map<std::string, std::string> found;
    for (const std::string& key : objects.Keys()) {
      if (key.starts_with("tails/")) found[key] = objects.Content(key).value();
    }
    return found;
  };
  const auto first = tails();
  CHECK(first.empty() == (effect == ObjectFault::Effect::kNone));
  for (int i = 0; i < 3; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.Ship());
  for (const auto& [key, content] : first) CHECK(objects.Content(key).value() == content);
  CHECK(tails().size() > 1);
  Site other(objects, 2);
  REQUIRE_OK(other.Restore());
  REQUIRE_OK(other.Open());
  CHECK(other.ReadAll() == history.states.back());
}

TEST_CASE("store in a bucket: with sync=bucket, it has a change of snapshots at once") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.shipping.wait_for_bucket = true;
  site.Make();
  REQUIRE_OK(site.Open());
  FileHistory history(1);
  REQUIRE_OK(history.Step(*site.fs));
  const auto names = [&] {
    const auto fork = objects.Fork();  // the machine is lost
    Site other(*fork, 2);
    REQUIRE_OK(other.Restore());
    REQUIRE_OK(other.Open());
    std::vector<std::string> found;
    for (const SnapshotInfo& snapshot : other.fs->snapshots().List())
      found.push_back(snapshot.name);
    return found;
  };
  REQUIRE_OK(site.fs->snapshots().Create("first"));
  CHECK(names() == std::vector<std::string>{"first"});
  REQUIRE_OK(site.fs->snapshots().Rename("first", "second"));
  CHECK(names() == std::vector<std::string>{"second"});
  REQUIRE_OK(site.fs->snapshots().Remove("second"));
  CHECK(names().empty());
}

TEST_CASE("store in a bucket: with threads that upload and ship", "[race]") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.shipping.background = true;
  site.shipping.interval = std::chrono::milliseconds(1);
  site.shipping.checkpoint_bytes = 20000;
  site.shipping.wait_for_bucket = GENERATE(false, true);
  site.Make();
  REQUIRE_OK(site.Open());
  FileHistory history(1);
  for (uint64_t i = 0; i < (kIsSanitized ? 20 : 60); ++i) {
    REQUIRE_OK(history.Step(*site.fs));
    if (i % 4 == 0) REQUIRE_OK(Maintain(*site.fs, i / 4 % 2));
  }
  if (!site.shipping.wait_for_bucket) {
    BucketSession& session = *site.session;
    REQUIRE_OK(
        session.shipper().WaitShipped(session.shipper().Position(), std::chrono::minutes(2)));
    CHECK(site.session->lag().commits == 0);
  }
  const auto fork = objects.Fork();  // the machine is lost
  Site other(*fork, 2);
  REQUIRE_OK(other.Restore());
  REQUIRE_OK(other.Open());
  CHECK(other.ReadAll() == history.states.back());
  other.Close();
  other.Check();
  site.Close();
  site.Check();
}

// Nothing looks at the readers while the store is open, unless the test takes seconds.
TEST_CASE("store in a bucket: a close deletes the objects that nothing needs any more", "[race]") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.shipping.background = true;
  site.shipping.interval = std::chrono::milliseconds(1);
  site.Make(16u << 10);
  REQUIRE_OK(site.Open());
  FileHistory history(9);
  for (uint64_t i = 0; i < 20; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.session->AwaitAll(std::chrono::minutes(2)));
  for (const std::string& name : ListNames(*site.fs, kRootInode))
    REQUIRE_OK(site.fs->Unlink(kRootInode, name));
  REQUIRE_OK(site.fs->SyncAll());
  REQUIRE_OK(Maintain(*site.fs, 1));
  const auto segments = [&objects] {
    return std::ranges::count_if(
        objects.Keys(), [](const std::string& key) { return key.starts_with("segments/"); });
  };
  const auto before = segments();
  site.Close();
  CHECK(segments() < before);
  {
    BucketSegmentStore left(*site.env, objects, site.Bucket());
    const auto listing = left.List();
    REQUIRE_OK(listing);
    CHECK(static_cast<size_t>(segments()) == listing->ids.size());
  }
  CHECK(site.env->ListDirectory("/cache/removed").value().empty());
  site.Check();
}

TEST_CASE("store in a bucket: a fault of any call of the bucket loses nothing") {
  for (const auto call : {ObjectCall::kPut, ObjectCall::kGet, ObjectCall::kStat,
                          ObjectCall::kRemove, ObjectCall::kList}) {
    for (uint64_t nth = 1; nth < 200; nth += call == ObjectCall::kPut ? 3 : 5) {
      INFO("call " << static_cast<int>(call) << ", " << nth);
      MemoryObjectStore objects;
      Site site(objects, 1);
      site.Make();
      REQUIRE_OK(site.Open());
      FileHistory history(nth);
      REQUIRE_OK(history.Step(*site.fs));
      REQUIRE_OK(site.Ship());
      const uint64_t before = objects.Calls(call);
      const bool changes = call == ObjectCall::kPut || call == ObjectCall::kRemove;
      objects.FailCall({.call = call,
                        .nth = nth,
                        .effect = changes && nth % 2 == 0 ? ObjectFault::Effect::kAnswerLost
                                                          : ObjectFault::Effect::kNone});
      size_t shipped = history.last();
      for (int i = 0; i < 10; ++i) {
        REQUIRE_OK(history.Step(*site.fs));
        if (i % 3 == 0) site.Ship().IgnoreError("the lag says what was shipped");
        if (site.session->lag().commits == 0) shipped = history.last();
      }
      const bool met = objects.Calls(call) - before >= nth;
      site.Crash();
      objects.ClearFaults();
      Site other(objects, 2);
      REQUIRE_OK(other.Restore());
      REQUIRE_OK(other.Open());
      REQUIRE(history.Has(other.ReadAll(), shipped));
      other.Close();
      other.Check();
      if (!met) break;
    }
  }
}

// The index of a restored store is empty, so its first mount reads all segments.
TEST_CASE("store in a bucket: an open takes a missing answer for no damage") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make();
  REQUIRE_OK(site.Open());
  FileHistory history(5);
  for (int i = 0; i < 20; ++i) REQUIRE_OK(history.Step(*site.fs));
  site.Close();
  int refused = 0;
  for (uint64_t nth = 1;; ++nth) {
    INFO("read " << nth);
    const auto fork = objects.Fork();
    Site other(*fork, 2);
    REQUIRE_OK(other.Restore());
    const uint64_t before = fork->Calls(ObjectCall::kGet);
    fork->FailCall({.call = ObjectCall::kGet, .nth = nth});
    const Status opened = other.Open();
    const bool met = fork->Calls(ObjectCall::kGet) - before >= nth;
    fork->ClearFaults();
    if (opened.ok()) {
      other.Close();
    } else {
      REQUIRE(opened.Is(StatusCode::kIoError));
      ++refused;
    }
    // During an outage reads fail at once, so begin without one.
    REQUIRE_OK(other.Open());
    REQUIRE(other.ReadAll() == history.states.back());
    other.Close();
    other.Check();
    if (!met) break;
  }
  CHECK(refused > 3);
}

TEST_CASE("store in a bucket: neither scrub nor fsck -y takes a missing answer for damage") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make();
  REQUIRE_OK(site.Open());
  FileHistory history(6);
  for (int i = 0; i < 20; ++i) REQUIRE_OK(history.Step(*site.fs));
  site.Close();
  REQUIRE_OK(site.Restore());  // with an empty cache
  REQUIRE_OK(site.Open());
  site.Close();
  const auto cached = site.env->ListDirectory("/cache/files");
  REQUIRE_OK(cached);
  for (const DirectoryEntry& entry : *cached)
    REQUIRE_OK(site.env->RemoveFile("/cache/files/" + entry.name));
  SECTION("scrub") {
    REQUIRE_OK(site.Open());
    objects.FailCall({.call = ObjectCall::kGet, .permanent = true, .key_part = "segments/"});
    CHECK(site.fs->maintenance().Scrub(ScrubMode::kFull).status().Is(StatusCode::kIoError));
    objects.ClearFaults();
    site.Crash();
    REQUIRE_OK(site.Open());
    const auto report = site.fs->maintenance().Scrub(ScrubMode::kFull);
    REQUIRE_OK(report);
    CHECK(report->damaged_blocks == 0);
    site.Close();
  }
  SECTION("fsck -y") {
    objects.FailCall({.call = ObjectCall::kGet, .permanent = true, .key_part = "segments/"});
    BucketSegmentStore segments(*site.env, objects, site.Bucket());
    RepairOptions options;
    options.check.store = "/store";
    options.check.segments = &segments;
    options.check.data = true;
    options.mode = RepairMode::kAll;
    CHECK(RepairStore(*site.env, options).status().Is(StatusCode::kIoError));
    objects.ClearFaults();
  }
  site.Check();
  REQUIRE_OK(site.Open());
  CHECK(site.ReadAll() == history.states.back());
}

TEST_CASE("store in a bucket: fsck finds objects that are missing, cut off or damaged") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make();
  REQUIRE_OK(site.Open());
  FileHistory history(9);
  for (int i = 0; i < 20; ++i) REQUIRE_OK(history.Step(*site.fs));
  site.Close();
  // Without local files all bytes come from the bucket.
  const auto findings = [&site, &objects](bool data) {
    const auto cached = site.env->ListDirectory("/cache/files");
    REQUIRE_OK(cached);
    for (const DirectoryEntry& entry : *cached)
      REQUIRE_OK(site.env->RemoveFile("/cache/files/" + entry.name));
    BucketSegmentStore segments(*site.env, objects, site.Bucket());
    CheckOptions options;
    options.store = "/store";
    options.segments = &segments;
    options.data = data;
    std::set<std::string> found;
    options.on_finding = [&](const Finding& finding) {
      found.insert(finding.code + " " + finding.path);
    };
    REQUIRE_OK(CheckStore(*site.env, options));
    return found;
  };
  std::string key;
  for (const std::string& candidate : objects.Keys()) {
    if (candidate.starts_with("segments/")) key = candidate;
  }
  const std::string content = objects.Content(key).value();
  const std::string name = objects.name() + "/" + key.substr(0, key.rfind('-'));
  REQUIRE(findings(/*data=*/true).empty());
  SECTION("missing") {
    REQUIRE_OK(objects.Remove(key));
    CHECK(findings(/*data=*/false).contains("segment-missing " + name));
  }
  SECTION("cut off") {
    objects.SetContent(key, content.substr(0, 1000));
    CHECK(findings(/*data=*/false).contains("segment-truncated " + name));
  }
  SECTION("a byte is damaged") {
    std::string damaged = content;
    damaged[5000] = static_cast<char>(damaged[5000] ^ 1);
    objects.SetContent(key, damaged);
    const auto found = findings(/*data=*/true);
    CHECK(std::ranges::any_of(found, [&name](const std::string& finding) {
      return finding.find(name) != std::string::npos;
    }));
  }
  objects.SetContent(key, content);
  CHECK(findings(/*data=*/true).empty());
}

}  // namespace
}  // namespace siltfs::testing
