#include "fs/deltas/open_near_duplicates.h"

#include <fmt/format.h>

#include <utility>

#include "chunker/chunk_namer.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

// Of a super-feature. With more of them fewer chunks become deltas, and fewer candidates are read
// for nothing (docs/engines.md, "SliceLSH"). A store must keep this number, because SliceLSH has
// the super-features of its chunks.
constexpr unsigned kFeatures = 1;

Result<std::unique_ptr<SliceLsh>> OpenLsh(Env& env, const std::string& directory,
                                          std::function<bool(SegmentId)> is_gone) {
  const auto info = env.GetFileInfo(directory);
  if (!info.ok() && !info.status().Is(StatusCode::kNotFound)) return info.status();
  if (!info.ok() || info->type != FileType::kDirectory)
    SILTFS_RETURN_IF_ERROR(MakeEmptyDirectory(env, directory));
  SliceLshOptions options;
  options.directory = directory;
  options.is_gone = std::move(is_gone);
  return SliceLsh::Open(env, options);
}

Result<std::unique_ptr<NearDuplicates>> Open(Env& env, const std::string& directory,
                                             const Superblock& superblock,
                                             std::shared_ptr<const ChunkerTables> tables,
                                             ChunkIndex& index, SegmentCache& segments,
                                             BlockReader& blocks, const SegmentBases& bases,
                                             std::function<bool(SegmentId)> is_gone,
                                             NearDuplicates::Options options) {
  SILTFS_ASSIGN_OR_RETURN(auto lsh, OpenLsh(env, directory, std::move(is_gone)));
  ResemblanceShape shape;
  shape.super_features = lsh->shape().tables;
  shape.features = kFeatures;
  SILTFS_ASSIGN_OR_RETURN(Resemblance resemblance, Resemblance::Create(std::move(tables), shape));
  SILTFS_ASSIGN_OR_RETURN(ChunkNamer namer, ChunkNamer::Create(superblock.uuid.bytes));
  return std::make_unique<NearDuplicates>(
      NearDuplicates::Dependencies{
          .index = index,
          .segments = segments,
          .blocks = blocks,
          .bases = bases,
          .lsh = std::move(lsh),
          .resemblance = std::move(resemblance),
          .verifier = ChunkVerifier(std::move(namer), superblock.tag_secret)},
      std::move(options));
}

}  // namespace

std::unique_ptr<NearDuplicates> OpenNearDuplicates(Env& env, const std::string& directory,
                                                   const Superblock& superblock,
                                                   std::shared_ptr<const ChunkerTables> tables,
                                                   ChunkIndex& index, SegmentCache& segments,
                                                   BlockReader& blocks, const SegmentBases& bases,
                                                   std::function<bool(SegmentId)> is_gone,
                                                   NearDuplicates::Options options) {
  const auto report = options.report;
  auto opened = Open(env, directory, superblock, std::move(tables), index, segments, blocks, bases,
                     std::move(is_gone), std::move(options));
  if (opened.ok()) return *std::move(opened);
  if (report) report(fmt::format("no deltas are made: {}", opened.status().ToString()));
  return nullptr;
}

}  // namespace siltfs
