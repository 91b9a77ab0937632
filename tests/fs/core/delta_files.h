// A store in which recompression has made deltas of some files. Not thread-safe.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "fs/interface/store_maintenance.h"
#include "store/segment/segment_reader.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/garbage_store.h"
#include "tests/support/catch.h"
#include "tests/support/family_chooser.h"

namespace siltfs::testing {

struct DeltaFiles : GarbageStore {
  static constexpr size_t kFileBytes = 60'000;

  DeltaFiles() {
    AllowDeltas(chooser);
    Begin();
  }

  static std::string Name(const char* kind, uint64_t seed) {
    return fmt::format("{} {}", kind, seed);
  }
  void Write(const char* kind, uint64_t seed, Bytes content) {
    const std::string name = Name(kind, seed);
    WriteLargeFile(*fs, name, content);
    files[name] = std::move(content);
  }
  void WriteBase(uint64_t seed) { Write("base", seed, RandomBytes(seed, kFileBytes)); }
  void WriteSimilar(uint64_t seed, uint8_t variant = 1) {
    Write("similar", seed, SimilarTo(RandomBytes(seed, kFileBytes), variant));
  }
  // Seals all segments, and recompresses them.
  RecompressionReport Settle() {
    Write("filler", next_filler_, RandomBytes(1'000 + next_filler_, 160'000));
    ++next_filler_;
    REQUIRE_OK(fs->SyncAll());
    Collect(/*dry_run=*/true);  // returns when the full segments are sealed
    const auto report = fs->maintenance().Recompress();
    REQUIRE_OK(report);
    return *report;
  }
  // Writes `count` bases and as many files that become deltas.
  void Fill(uint64_t count) {
    for (uint64_t seed = 1; seed <= count; ++seed) WriteBase(seed);
    Settle();
    for (uint64_t seed = 1; seed <= count; ++seed) WriteSimilar(seed);
    Settle();
    REQUIRE(CountDeltas() > count);
  }
  void ForEachDelta(
      const std::function<void(SegmentId, const ChunkRecord&, const BaseRef&)>& visit) {
    const auto state = ReadSuperblock(env, path);
    REQUIRE_OK(state);
    const auto segments = SegmentsOf(env, path);
    const auto listing = segments->List();
    REQUIRE_OK(listing);
    const BlockCodec codec;
    for (const SegmentId id : listing->ids) {
      const auto reader = SegmentReader::Open(*segments, {state->superblock.uuid, id}, codec);
      REQUIRE_OK(reader);
      const auto table = (*reader)->ScanBlockTable();
      if (!table.ok()) continue;
      for (const BlockPlace& place : table->blocks) {
        const auto head = (*reader)->ReadBlockHead(place.block_offset);
        const auto deltas = (*reader)->ReadDeltaBases(place.block_offset);
        if (!head.ok() || !deltas.ok()) continue;
        for (const DeltaBase& delta : *deltas) visit(id, head->records[delta.position], delta.base);
      }
    }
  }
  size_t CountDeltas() {
    size_t count = 0;
    ForEachDelta([&](SegmentId, const ChunkRecord&, const BaseRef&) { ++count; });
    return count;
  }

  // Changes a byte of the base with this seed in each segment that stores it. The store is closed.
  // Returns the number of these segments.
  size_t SpoilBase(uint64_t seed) {
    const Bytes content = RandomBytes(seed, kFileBytes);
    const std::string_view part = AsText(ByteView(content).subspan(30'000, 40));
    const auto segments = SegmentsOf(env, path);
    const auto listing = segments->List();
    REQUIRE_OK(listing);
    size_t spoilt = 0;
    for (const SegmentId id : listing->ids) {
      ChangeSegment(env, path, id, [&](std::string& all) {
        const size_t place = all.find(part);
        if (place == std::string::npos) return;
        all[place] ^= 1;
        ++spoilt;
      });
    }
    return spoilt;
  }
  // The codes of the findings of fsck.
  std::multiset<std::string> Check(bool data) {
    std::multiset<std::string> codes;
    CheckOptions options;
    options.store = path;
    options.segments = SealedSegments(env);
    options.data = data;
    options.on_finding = [&codes](const Finding& finding) {
      INFO(finding.path << ": " << finding.message);
      codes.insert(finding.code);
    };
    REQUIRE_OK(CheckStore(env, options));
    return codes;
  }

  FamilyChooser chooser;

 private:
  uint64_t next_filler_ = 0;
};

}  // namespace siltfs::testing
