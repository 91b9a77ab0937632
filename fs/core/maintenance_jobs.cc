#include "fs/core/maintenance_jobs.h"

#include <algorithm>
#include <utility>

namespace siltfs {
namespace {

// Recompression needs free space for this many segments, in addition to the reserve's spare_bytes:
// for the new file of one segment, and for chunks that writers put while this file is written.
constexpr uint64_t kSegmentsFreeToRecompress = 2;

uint32_t RecompressedBlockBytes(const Superblock& superblock) {
  return std::max(superblock.block_plain_bytes, kRecompressedBlockBytes);
}

Recompressor::Options RecompressorOptions(ChunkParts& parts, BaseChooser* chooser) {
  const Superblock& superblock = parts.options.superblock;
  const SpaceReserve* reserve = parts.options.reserve;
  Recompressor::Options options;
  options.store = parts.options.store;
  options.uuid = superblock.uuid;
  options.compression = superblock.compression;
  options.block_plain_bytes = RecompressedBlockBytes(superblock);
  options.needed_bytes = (reserve != nullptr ? reserve->spare_bytes() : 0) +
                         kSegmentsFreeToRecompress * superblock.segment_bytes;
  options.report = parts.options.report;
  options.is_victim = [&parts](SegmentId id) {
    return parts.victims.Contains(id) || parts.gone->Contains(id);
  };
  options.is_damaged = [&parts](SegmentId id) { return parts.damage.HasAnyOf(id); };
  if (superblock.deltas()) options.chooser = chooser;
  options.base_source = parts.idle_bases.get();
  return options;
}

CollectorOptions CollectionOptions(const ChunkParts& parts,
                                   const MaintenanceJobs::Options& options) {
  const Superblock& superblock = parts.options.superblock;
  CollectorOptions collect;
  collect.store = parts.options.store;
  collect.compression = superblock.compression;
  collect.block_plain_bytes = RecompressedBlockBytes(superblock);
  collect.segment_bytes = superblock.segment_bytes;
  collect.spill_directory = options.spill_directory;
  collect.report = parts.options.report;
  collect.room_for_others = options.room_for_others;
  return collect;
}

Scrubber::Options ScrubOptions(const ChunkParts& parts, const MaintenanceJobs::Options& options) {
  Scrubber::Options scrub;
  scrub.store = parts.options.store;
  scrub.uuid = parts.options.superblock.uuid;
  scrub.tag_secret = parts.options.superblock.tag_secret;
  scrub.reached = options.scrub;
  scrub.report = parts.options.report;
  return scrub;
}

}  // namespace

MaintenanceJobs::MaintenanceJobs(ChunkParts& parts, NodeStore& nodes, const SegmentRecords& records,
                                 Options options)
    : recompressor_({parts.env, parts.index, *parts.log, *parts.segments, parts.activity,
                     parts.account, *parts.options.metadata, parts.bases},
                    RecompressorOptions(parts, options.chooser)),
      collector_({parts.env,
                  parts.index,
                  *parts.log,
                  *parts.segments,
                  parts.windows,
                  *parts.reader,
                  *parts.pipeline,
                  recompressor_,
                  parts.codec,
                  nodes,
                  parts.uses,
                  parts.mark_begin,
                  parts.victims,
                  parts.damage,
                  *parts.gone,
                  parts.secondary,
                  parts.bases,
                  parts.activity,
                  parts.account,
                  *parts.options.metadata,
                  parts.options.reserve},
                 CollectionOptions(parts, options)),
      scrubber_({parts.env, *parts.log, *parts.segments, parts.reader->bases(), *parts.pipeline,
                 parts.damage, parts.activity, *parts.options.metadata},
                ScrubOptions(parts, options)) {
  for (const auto& [id, record] : records) recompressor_.Add(id, record);
  parts.sealed_to.push_back(&recompressor_);
  SegmentGuide* const guide = parts.options.guide;
  if (guide == nullptr || !guide->usable()) return;
  guide_updater_ = std::make_unique<GuideUpdater>(
      parts.env, *guide, parts.segments->store(), *parts.gone,
      GuideUpdater::Options{.store = parts.options.store, .uuid = parts.options.superblock.uuid});
  parts.sealed_to.push_back(guide_updater_.get());
}

void MaintenanceJobs::Stop() {
  scrubber_.Stop();
  recompressor_.Stop();  // before collector_, because a collection may wait for recompression
  collector_.Stop();
  if (guide_updater_) guide_updater_->Stop();  // after collector_, which removes segments
}

}  // namespace siltfs
