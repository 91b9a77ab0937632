#include "fs/repair/node_writer.h"

#include <algorithm>
#include <utility>

#include "fs/segments/sealed_record.h"

namespace siltfs {
namespace {

constexpr size_t kBlockBytes = 128u << 10;

}  // namespace

NodeWriter::NodeWriter(Env& env, Options options, NodeFinder& finder, ChunkNamer namer)
    : env_(env),
      options_(std::move(options)),
      finder_(finder),
      namer_(std::move(namer)),
      tag_key_(options_.superblock.tag_secret),
      next_segment_(options_.first_segment),
      next_sequence_(options_.first_sequence) {}

Result<std::unique_ptr<NodeWriter>> NodeWriter::Create(Env& env, Options options,
                                                       NodeFinder& finder) {
  SILTFS_ASSIGN_OR_RETURN(ChunkNamer namer, ChunkNamer::Create(options.superblock.uuid.bytes));
  return std::unique_ptr<NodeWriter>(
      new NodeWriter(env, std::move(options), finder, std::move(namer)));
}

Result<ChunkName> NodeWriter::PutNode(ByteView node) {
  const ChunkName name = namer_.NameOf(node);
  if (put_.contains(name)) return name;
  const auto stored = finder_.GetNode(name, static_cast<uint32_t>(node.size()));
  if (stored.ok() && std::equal(node.begin(), node.end(), (*stored)->begin(), (*stored)->end()))
    return name;
  stored.status().IgnoreError("the node is written now");
  if (!block_.Fits(node.size())) SILTFS_RETURN_IF_ERROR(WriteBlock());
  ChunkRecord record;
  record.name = name;
  record.tag = tag_key_.TagOf(node);
  record.length = static_cast<uint32_t>(node.size());
  SILTFS_RETURN_IF_ERROR(block_.Add(record, node));
  put_.insert(name);
  if (block_.plain_bytes() >= kBlockBytes) SILTFS_RETURN_IF_ERROR(WriteBlock());
  return name;
}

Result<std::shared_ptr<const Bytes>> NodeWriter::GetNode(const ChunkName& name,
                                                         uint32_t node_bytes) {
  return finder_.GetNode(name, node_bytes);
}

Status NodeWriter::WriteBlock() {
  if (block_.empty()) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const EncodedBlock block,
                          codec_.Encode(block_.Take(), {BlockCodecId::kNone, 0}));
  if (segment_ && !segment_->HasRoomFor(block)) SILTFS_RETURN_IF_ERROR(Seal());
  if (!segment_) {
    if (next_segment_ >= options_.segment_limit)
      return Status(StatusCode::kNoSpace, "too many recipe nodes change at once")
          .At(options_.store);
    SegmentWriterOptions options;
    options.target_size = options_.superblock.segment_bytes;
    SILTFS_ASSIGN_OR_RETURN(
        segment_,
        SegmentWriter::Create(env_, options_.store, {options_.superblock.uuid, next_segment_},
                              SegmentKind::kRecipeNodes, options_.last_commit, options));
    ++next_segment_;
  }
  return segment_->Append(block, next_sequence_++, options_.last_commit).status();
}

Status NodeWriter::Seal() {
  if (!segment_) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(segment_->Seal());
  SILTFS_RETURN_IF_ERROR(
      options_.segments->Put(segment_->id(), BuiltSegment(env_, options_.store, segment_->id())));
  records_.emplace_back(segment_->id(), SealedRecord(segment_->totals()));
  segment_.reset();
  return Status::Ok();
}

Result<SegmentRecords> NodeWriter::Finish() {
  SILTFS_RETURN_IF_ERROR(WriteBlock());
  SILTFS_RETURN_IF_ERROR(Seal());
  return std::move(records_);
}

}  // namespace siltfs
