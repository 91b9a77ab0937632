#include "index/silt/manifest_log.h"

#include "store/base/random.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

const std::string kDirectory = "/index";
const std::string kEdits = "/index/manifest.edits";

StoreManifest Empty(unsigned partition_bits) {
  StoreManifest manifest;
  manifest.name_hash.secret = 7;
  manifest.bucket_bits = 11;
  manifest.partition_bits = partition_bits;
  manifest.partitions.resize(size_t{1} << partition_bits);
  return manifest;
}

bool Same(StoreManifest a, const StoreManifest& b) {
  a.generation = b.generation;
  return a == b;
}

// A manifest on a simulated device, changed as an index changes it.
struct Fixture {
  explicit Fixture(unsigned partition_bits = 2) : manifest(Empty(partition_bits)) {
    REQUIRE_OK(env.CreateDirectory(kDirectory));
    REQUIRE_OK(env.SyncDirectory("/"));
    log = std::make_unique<ManifestLog>(env, kDirectory);
    auto nothing = log->Read();
    REQUIRE_OK(nothing);
    REQUIRE(!nothing->has_value());
    REQUIRE_OK(log->Replace(manifest));
  }

  // The next change: mostly a conversion, sometimes a merge or a flush.
  ManifestEdit Next() {
    ManifestEdit edit = EditOf(manifest);
    const auto p = static_cast<uint32_t>(random.Below(manifest.partitions.size()));
    const uint64_t kind = random.Below(8);
    if (kind == 0) {
      edit.complete_sequence += 5;
      for (uint32_t i = 0; i < manifest.partitions.size(); ++i) {
        ChangeOf(i, manifest, edit).durable_page += 1;
      }
    } else if (kind == 1) {
      PartitionEdit& change = ChangeOf(p, manifest, edit);
      change.merged = static_cast<uint32_t>(manifest.partitions[p].hash_ids.size());
      change.sorted_id = edit.next_id++;
    } else {
      PartitionEdit& change = ChangeOf(p, manifest, edit);
      change.new_hash_ids.push_back(edit.next_id++);
      change.first_log_id = edit.next_id;
      change.first_page += 40;
      change.complete_sequence += 1;
    }
    return edit;
  }
  Status Change() { return log->Record(Next(), manifest); }

  StoreManifest Found() {
    auto found = ReadStoreManifest(env, kDirectory);
    REQUIRE_OK(found);
    REQUIRE(found->has_value());
    return **found;
  }
  // Opens the manifest as a new process would.
  void Reopen() {
    log = std::make_unique<ManifestLog>(env, kDirectory);
    auto found = log->Read();
    REQUIRE_OK(found);
    REQUIRE(found->has_value());
    manifest = **found;
    REQUIRE_OK(log->FinishRead(manifest));
  }
  std::string Edits() {
    auto edits = ReadWholeFile(env, kEdits, 1U << 30);
    REQUIRE_OK(edits);
    return *edits;
  }
  void SetEdits(const std::string& bytes) {
    auto file = env.OpenFile(kEdits, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Truncate(0));
    REQUIRE_OK((*file)->Write(0, AsBytes(bytes)));
    REQUIRE_OK((*file)->Sync());
  }

  SimEnv env;
  StoreManifest manifest;
  std::unique_ptr<ManifestLog> log;
  Random random{3};
};

}  // namespace

TEST_CASE("a manifest reads as its edits left it, across openings and new bases") {
  Fixture fixture;
  const uint64_t first = fixture.manifest.generation;
  for (int i = 0; i < 500; ++i) {
    REQUIRE_OK(fixture.Change());
    REQUIRE(fixture.Found() == fixture.manifest);
    if (i % 250 == 249) {
      const StoreManifest before = fixture.manifest;
      fixture.Reopen();
      REQUIRE(Same(fixture.manifest, before));
      REQUIRE(fixture.Found() == fixture.manifest);
    }
  }
  // Each edit takes 512 bytes. A new base follows after 64 KiB of them, and at each opening.
  CHECK(fixture.manifest.generation == first + 4);
}

TEST_CASE("an edit costs the same for any number of stores") {
  Fixture fixture(8);
  for (uint32_t p = 0; p < 256; ++p) {
    for (int i = 0; i < 40; ++i) {
      ManifestEdit edit = EditOf(fixture.manifest);
      ChangeOf(p, fixture.manifest, edit).new_hash_ids.push_back(edit.next_id++);
      Apply(edit, fixture.manifest);
    }
  }
  REQUIRE_OK(fixture.log->Replace(fixture.manifest));
  REQUIRE(EncodeStoreManifest(fixture.manifest).size() > 90'000);
  const uint64_t before = fixture.log->bytes_written();
  for (int i = 0; i < 100; ++i) {
    ManifestEdit edit = EditOf(fixture.manifest);
    ChangeOf(7, fixture.manifest, edit).new_hash_ids.push_back(edit.next_id++);
    REQUIRE_OK(fixture.log->Record(edit, fixture.manifest));
  }
  CHECK(fixture.log->bytes_written() - before == 100 * 512);
}

TEST_CASE("a damaged edit is reported, unless it is the last one, which a crash may have torn") {
  Fixture fixture;
  std::vector<StoreManifest> states{fixture.manifest};
  for (int i = 0; i < 6; ++i) {
    REQUIRE_OK(fixture.Change());
    states.push_back(fixture.manifest);
  }
  const std::string good = fixture.Edits();
  REQUIRE(good.size() == 6 * 512);
  for (size_t i = 0; i < good.size(); i += 3) {
    INFO("byte " << i);
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    fixture.SetEdits(bad);
    if (i < 5 * 512) {
      REQUIRE_CODE(ReadStoreManifest(fixture.env, kDirectory), kCorruption);
    } else {
      REQUIRE(fixture.Found() == states[5]);
    }
  }
  for (size_t length = 0; length <= good.size(); length += 100) {
    fixture.SetEdits(good.substr(0, length));
    REQUIRE(fixture.Found() == states[length / 512]);
  }
  // An edit that is exchanged with another one.
  std::string swapped = good;
  std::copy_n(good.begin() + 512, 512, swapped.begin() + 1024);
  fixture.SetEdits(swapped);
  REQUIRE_CODE(ReadStoreManifest(fixture.env, kDirectory), kCorruption);
}

TEST_CASE("a manifest without its file of edits is damaged") {
  Fixture fixture;
  REQUIRE_OK(fixture.env.RemoveFile(kEdits));
  REQUIRE_CODE(ReadStoreManifest(fixture.env, kDirectory), kCorruption);
}

TEST_CASE("edits of an earlier generation do not count") {
  Fixture fixture;
  for (int i = 0; i < 5; ++i) REQUIRE_OK(fixture.Change());
  const std::string old = fixture.Edits();
  REQUIRE_OK(fixture.log->Replace(fixture.manifest));
  // The truncation of the old edits may be lost in a crash.
  fixture.SetEdits(old);
  CHECK(fixture.Found() == fixture.manifest);
  fixture.Reopen();
  REQUIRE_OK(fixture.Change());
  CHECK(fixture.Found() == fixture.manifest);
}

TEST_CASE("an edit that fails may be recorded again") {
  const auto code = GENERATE(StatusCode::kNoSpace, StatusCode::kIoError);
  const auto call = GENERATE(SimCall::kWrite, SimCall::kSync, SimCall::kSyncDirectory);
  const uint64_t bytes = GENERATE(0, 100, 512);  // of the edit, that are written
  Fixture fixture;
  for (int i = 0; i < 3; ++i) REQUIRE_OK(fixture.Change());
  for (int i = 0; i < 20; ++i) {
    const StoreManifest before = fixture.manifest;
    const std::string path = call == SimCall::kSyncDirectory ? kDirectory : "manifest.edits";
    fixture.env.FailCall({.calls = call, .code = code, .path_part = path, .bytes_written = bytes});
    const ManifestEdit failed = fixture.Next();
    REQUIRE_FALSE(fixture.log->Record(failed, fixture.manifest).ok());
    REQUIRE(fixture.manifest == before);
    fixture.env.ClearFaults();
    StoreManifest after = before;
    Apply(failed, after);
    const StoreManifest found = fixture.Found();
    REQUIRE((found == before || found == after));
    REQUIRE_OK(fixture.Change());  // another edit than the one that failed
    const StoreManifest expected = fixture.manifest;
    REQUIRE(fixture.Found() == expected);
    fixture.env.PowerCut();
    fixture.Reopen();
    REQUIRE(Same(fixture.manifest, expected));
  }
}

TEST_CASE("a base that fails does not mix with edits") {
  Fixture fixture;
  for (int i = 0; i < 200; ++i) {
    const StoreManifest before = fixture.manifest;
    fixture.env.FailCall({.calls = SimCall::kAny,
                          .nth = 1 + fixture.random.Below(8),
                          .code = StatusCode::kNoSpace,
                          .path_part = "index"});
    const bool replaced = fixture.log->Replace(fixture.manifest).ok();
    fixture.env.ClearFaults();
    if (!replaced) REQUIRE(Same(fixture.manifest, before));
    for (int k = 0; k < 3; ++k) REQUIRE_OK(fixture.Change());
    REQUIRE(fixture.Found() == fixture.manifest);
    if (i % 3 == 0) {
      const StoreManifest expected = fixture.manifest;
      fixture.env.PowerCut();
      fixture.Reopen();
      REQUIRE(Same(fixture.manifest, expected));
    }
  }
}

TEST_CASE("after a power cut the manifest is the last durable one or the next one") {
  const auto policy = GENERATE(CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                               CrashPolicy::Unsynced::kPrefix, CrashPolicy::Unsynced::kSubset,
                               CrashPolicy::Unsynced::kGarble);
  Fixture fixture(6);
  Random random(17);
  int lost = 0;
  int kept = 0;
  for (uint64_t cut = 0; cut < 600; ++cut) {
    INFO("cut " << cut);
    fixture.env.CutAtCall(1 + random.Below(12));
    StoreManifest before = fixture.manifest;
    StoreManifest next = before;
    while (true) {
      before = fixture.manifest;
      const ManifestEdit edit = fixture.Next();
      next = before;
      Apply(edit, next);
      const bool base = random.OneIn(6);
      if (base) next = before;
      if (!(base ? fixture.log->Replace(fixture.manifest)
                 : fixture.log->Record(edit, fixture.manifest))
               .ok()) {
        break;
      }
    }
    fixture.env.Reboot({.unsynced = policy, .seed = cut, .names_in_any_order = cut % 2 == 0});
    // A killed process comes first in half of the cases: the next one reads, but is cut, too.
    if (random.OneIn(2)) {
      fixture.env.CutAtCall(1 + random.Below(3));
      fixture.log = std::make_unique<ManifestLog>(fixture.env, kDirectory);
      auto read = fixture.log->Read();
      REQUIRE_OK(read);
      fixture.log->FinishRead(**read).IgnoreError("the power may have been cut");
      fixture.env.Reboot({.unsynced = policy, .seed = cut});
    }
    const StoreManifest found = fixture.Found();
    REQUIRE((Same(found, before) || Same(found, next)));
    if (!Same(before, next)) ++(Same(found, before) ? lost : kept);
    fixture.Reopen();
    REQUIRE(Same(fixture.manifest, found));
  }
  if (policy != CrashPolicy::Unsynced::kKeep) CHECK(lost > 50);
  if (policy != CrashPolicy::Unsynced::kDrop) CHECK(kept > 10);
}

TEST_CASE("what an opening has read survives a power cut, also on a full disk") {
  const bool full = GENERATE(false, true);
  Fixture fixture;
  REQUIRE_OK(fixture.Change());
  fixture.env.FailCall({.calls = SimCall::kSync, .path_part = "manifest.edits"});
  const ManifestEdit edit = fixture.Next();
  StoreManifest next = fixture.manifest;
  Apply(edit, next);
  REQUIRE_FALSE(fixture.log->Record(edit, fixture.manifest).ok());
  fixture.env.ClearFaults();
  // The process is killed. The edit that could not be synced is in the kernel's memory.
  REQUIRE(fixture.Found() == next);
  if (full) {
    fixture.env.FailCall({.calls = SimCall::kWrite,
                          .code = StatusCode::kNoSpace,
                          .sticky = true,
                          .path_part = "manifest.new"});
  }
  fixture.Reopen();
  CHECK((fixture.manifest.generation == next.generation) == full);
  fixture.env.PowerCut();
  CHECK(Same(fixture.Found(), next));
  fixture.Reopen();
  REQUIRE_OK(fixture.Change());  // with room for an edit, if not for a base
  CHECK(fixture.Found() == fixture.manifest);
}

TEST_CASE("an opening without file descriptors leaves the manifest as it was or as it will be") {
  for (uint64_t nth = 1; nth <= 12; ++nth) {
    INFO("call " << nth);
    Fixture fixture;
    for (int i = 0; i < 3; ++i) REQUIRE_OK(fixture.Change());
    const StoreManifest before = fixture.manifest;
    fixture.log = std::make_unique<ManifestLog>(fixture.env, kDirectory);
    auto read = fixture.log->Read();
    REQUIRE_OK(read);
    fixture.env.FailCall({.calls = SimCall::kMutating | SimCall::kOpen,
                          .nth = nth,
                          .code = StatusCode::kOutOfMemory,
                          .path_part = "index"});
    StoreManifest manifest = **read;
    const Status finished = fixture.log->FinishRead(manifest);
    fixture.env.ClearFaults();
    if (finished.ok()) {
      // The edits that follow must survive.
      fixture.manifest = manifest;
      REQUIRE_OK(fixture.Change());
    } else {
      REQUIRE(finished.code() != StatusCode::kOutOfMemory);
    }
    const StoreManifest expected = finished.ok() ? fixture.manifest : before;
    fixture.env.PowerCut({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = nth});
    REQUIRE(Same(fixture.Found(), expected));
  }
}

TEST_CASE("an opening makes a base durable that a killed process has only renamed") {
  const bool has_edits = GENERATE(false, true);
  Fixture fixture;
  if (has_edits) REQUIRE_OK(fixture.Change());
  const StoreManifest before = fixture.manifest;
  StoreManifest next = before;
  next.complete_sequence += 100;
  // The rename succeeds, but not the sync of the directory after it.
  fixture.env.FailCall({.calls = SimCall::kSyncDirectory, .nth = 2, .sticky = true});
  REQUIRE_FALSE(fixture.log->Replace(next).ok());
  fixture.env.ClearFaults();
  fixture.log.reset();
  const StoreManifest found = fixture.Found();
  fixture.Reopen();
  fixture.env.PowerCut();
  CHECK(Same(fixture.Found(), found));
}

TEST_CASE("edits that lead to no valid manifest are refused and change nothing") {
  Fixture fixture;
  for (int i = 0; i < 20; ++i) REQUIRE_OK(fixture.Change());
  const StoreManifest before = fixture.manifest;
  const auto refused = [&](auto change) {
    ManifestEdit edit = EditOf(before);
    edit.next_id += 3;
    change(edit, ChangeOf(1, before, edit));
    return fixture.log->Record(edit, fixture.manifest);
  };
  REQUIRE_CODE(refused([](auto&, auto& c) { c.partition = 4; }), kCorruption);
  REQUIRE_CODE(refused([](auto&, auto& c) { c.merged = 1000; }), kCorruption);
  REQUIRE_CODE(refused([](auto& e, auto& c) { c.sorted_id = e.next_id; }), kCorruption);
  REQUIRE_CODE(refused([](auto& e, auto& c) { c.first_log_id = e.next_id + 1; }), kCorruption);
  REQUIRE_CODE(refused([](auto& e, auto& c) { c.new_hash_ids = {e.next_id}; }), kCorruption);
  REQUIRE_CODE(refused([](auto&, auto& c) {
                 c.merged = static_cast<uint32_t>(1000);
                 c.new_hash_ids = {0};
               }),
               kCorruption);
  REQUIRE_CODE(refused([](auto& e, auto& c) {
                 c.new_hash_ids = {e.next_id - 1, e.next_id - 2};
               }),
               kCorruption);
  REQUIRE_CODE(refused([](auto& e, auto&) { e.next_id = 0; }), kCorruption);
  CHECK(fixture.manifest == before);
  CHECK(fixture.Found() == before);
  REQUIRE_OK(refused([](auto&, auto&) {}));
}

}  // namespace siltfs
