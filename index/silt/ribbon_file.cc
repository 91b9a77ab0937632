#include "index/silt/ribbon_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "SILTRIB\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kFooterSize = 120;
constexpr size_t kChecksumSize = 8;
constexpr uint32_t kBlocksReadAtOnce = 8 * RibbonFileWriter::kBlocksAtOnce;  // at most 64 KiB

StoreFileId FilterOf(const StoreFileId& store) {
  return {StoreKind::kFilter, store.partition, store.id};
}

uint64_t OffsetOf(const RibbonShape& shape, unsigned slice, uint32_t block) {
  return slice * shape.slice_bytes() + uint64_t{block} * shape.block_words * sizeof(uint64_t);
}

uint64_t SizeOf(const RibbonShape& shape) {
  return OffsetOf(shape, kRibbonSlices, 0) + kFooterSize;
}

struct Footer {
  StoreFileId id;
  uint64_t store_fingerprint = 0;
  RibbonShape shape;
  std::array<uint64_t, kRibbonSlices> checksums{};
};

std::string EncodeFooter(const Footer& footer) {
  Encoder out;
  out.Raw(kMagic).U32(kVersion).U32(footer.id.partition).U64(footer.id.id);
  out.U64(footer.store_fingerprint).U32(footer.shape.blocks).U32(footer.shape.block_words);
  out.U8(static_cast<uint8_t>(footer.shape.skip_bits)).U8(kRibbonSlices).U16(0).U32(0);
  for (const uint64_t checksum : footer.checksums) out.U64(checksum);
  out.U64(Checksum(out.view()));
  return out.Take();
}

Result<Footer> DecodeFooter(ByteView bytes) {
  const auto damaged = [](const char* what) { return Status(StatusCode::kCorruption, what); };
  const size_t checked = kFooterSize - kChecksumSize;
  if (Decoder(bytes.subspan(checked)).U64() != Checksum(bytes.first(checked))) {
    return damaged("has a footer with a wrong checksum");
  }
  Decoder in(bytes);
  if (AsText(in.Raw(kMagic.size())) != kMagic) return damaged("is no filter of a SortedStore");
  const uint32_t version = in.U32();
  if (version != kVersion) {
    return Status(StatusCode::kNeedsNewer, fmt::format("is a filter of version {}", version));
  }
  Footer footer;
  footer.id = {StoreKind::kFilter, in.U32(), 0};
  footer.id.id = in.U64();
  footer.store_fingerprint = in.U64();
  footer.shape.blocks = in.U32();
  footer.shape.block_words = in.U32();
  footer.shape.skip_bits = in.U8();
  const unsigned slices = in.U8();
  const uint64_t reserved = uint64_t{in.U16()} | in.U32();
  for (uint64_t& checksum : footer.checksums) checksum = in.U64();
  if (reserved != 0 || slices != kRibbonSlices || footer.shape.blocks == 0 ||
      footer.shape.block_words == 0 || footer.shape.block_words > RibbonShape::kMostBlockWords) {
    return damaged("has an invalid footer");
  }
  return footer;
}

}  // namespace

// --- Writing ---

RibbonFileWriter::RibbonFileWriter(Env& env, const std::string& directory,
                                   std::shared_ptr<File> file, const StoreFileId& id,
                                   const RibbonShape& shape, Throttle& throttle)
    : env_(env),
      directory_(directory),
      file_(std::move(file)),
      id_(id),
      shape_(shape),
      throttle_(throttle),
      block_(shape.block_words) {
  for (auto& words : words_) {
    words.reserve(size_t{std::min(kBlocksAtOnce, shape_.blocks)} * shape_.block_words);
  }
}

RibbonFileWriter::~RibbonFileWriter() {
  if (whole_) return;
  const Status removed = RemoveStoreFile(env_, directory_, id_);
  removed.IgnoreError("no manifest lists its store, so the next opening removes it");
}

Result<std::unique_ptr<RibbonFileWriter>> RibbonFileWriter::Create(
    Env& env, const std::string& directory, const StoreFileId& store, unsigned partition_bits,
    uint64_t expected_entries, Throttle& throttle) {
  const StoreFileId id = FilterOf(store);
  SILTFS_ASSIGN_OR_RETURN(auto file, CreateStoreFile(env, directory, id));
  return std::unique_ptr<RibbonFileWriter>(
      new RibbonFileWriter(env, directory, std::move(file), id,
                           RibbonShape::For(expected_entries, partition_bits), throttle));
}

Status RibbonFileWriter::Add(uint64_t hash) {
  const RibbonRow row = RibbonRow::Of(shape_, hash);
  while (blocks_ < row.block) SILTFS_RETURN_IF_ERROR(EndBlock());
  block_.Add(row.start, row.coefficients);
  return Status::Ok();
}

Status RibbonFileWriter::EndBlock() {
  RibbonBlock::Solutions solutions;
  for (unsigned slice = 0; slice < kRibbonSlices; ++slice) {
    auto& words = words_[slice];
    words.resize(words.size() + shape_.block_words);
    solutions[slice] = std::span(words).last(shape_.block_words);
  }
  block_.Solve(uint64_t{blocks_} << 32, solutions);
  ++blocks_;
  return blocks_ - blocks_written_ == kBlocksAtOnce ? WriteBlocks() : Status::Ok();
}

Status RibbonFileWriter::WriteBlocks() {
  for (unsigned slice = 0; slice < kRibbonSlices; ++slice) {
    Encoder out;
    for (const uint64_t word : words_[slice]) out.U64(word);
    words_[slice].clear();
    checksums_[slice] = Checksum(out.view(), checksums_[slice]);
    throttle_.Pay(out.size());
    SILTFS_RETURN_IF_ERROR(file_->Write(OffsetOf(shape_, slice, blocks_written_), out.view()));
  }
  blocks_written_ = blocks_;
  return Status::Ok();
}

Status RibbonFileWriter::Finish(uint64_t store_fingerprint) {
  while (blocks_ < shape_.blocks) SILTFS_RETURN_IF_ERROR(EndBlock());
  if (blocks_written_ < blocks_) SILTFS_RETURN_IF_ERROR(WriteBlocks());
  const std::string footer = EncodeFooter({.id = id_,
                                           .store_fingerprint = store_fingerprint,
                                           .shape = shape_,
                                           .checksums = checksums_});
  throttle_.Pay(footer.size());
  SILTFS_RETURN_IF_ERROR(file_->Write(OffsetOf(shape_, kRibbonSlices, 0), AsBytes(footer)));
  SILTFS_RETURN_IF_ERROR(file_->Sync());
  whole_ = true;
  return Status::Ok();
}

// --- Reading ---

Result<std::shared_ptr<const RibbonFile>> RibbonFile::Open(Env& env, const std::string& directory,
                                                           const StoreFileId& store,
                                                           unsigned partition_bits,
                                                           uint64_t store_fingerprint) {
  const StoreFileId id = FilterOf(store);
  const std::string path = JoinPath(directory, StoreFileName(id));
  SILTFS_ASSIGN_OR_RETURN(auto file,
                          OpenStoreFile(env, directory, id, OpenMode::kRead, /*direct=*/true));
  if (file == nullptr) return Status(StatusCode::kNotFound, "is missing").At(path);
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size < kFooterSize) return Status(StatusCode::kCorruption, "is too short").At(path);
  SILTFS_ASSIGN_OR_RETURN(const Bytes bytes,
                          ReadStoreRange(*file, size - kFooterSize, kFooterSize));
  auto footer = DecodeFooter(bytes);
  if (!footer.ok()) return std::move(footer).status().At(path);
  if (footer->id != id || footer->store_fingerprint != store_fingerprint ||
      footer->shape.skip_bits != partition_bits || SizeOf(footer->shape) != size) {
    return Status(StatusCode::kCorruption, "is not the filter of its SortedStore").At(path);
  }
  return std::shared_ptr<const RibbonFile>(
      new RibbonFile(std::move(file), id, footer->shape, footer->checksums));
}

uint64_t RibbonFile::size() const { return SizeOf(shape_); }

Result<std::shared_ptr<const RibbonSlice>> RibbonFile::ReadSlice(unsigned number) const {
  auto slice = std::make_shared<RibbonSlice>();
  slice->reserve(shape_.slice_words());
  const size_t block_bytes = shape_.block_words * sizeof(uint64_t);
  uint64_t checksum = 0;
  // The buffer has pages of its own. Loading threads are short-lived. With a buffer on the heap,
  // each of these threads would leave behind an allocator heap of its own.
  PageVector<uint8_t> buffer;
  for (uint32_t block = 0; block < shape_.blocks; block += kBlocksReadAtOnce) {
    const uint32_t blocks = std::min(kBlocksReadAtOnce, shape_.blocks - block);
    SILTFS_ASSIGN_OR_RETURN(
        const ByteView bytes,
        ReadStoreRange(*file_, OffsetOf(shape_, number, block), blocks * block_bytes, buffer));
    // The pieces must be those of WriteBlocks, because the checksum depends on them.
    for (ByteView rest = bytes; !rest.empty();) {
      const size_t piece = std::min(rest.size(), RibbonFileWriter::kBlocksAtOnce * block_bytes);
      checksum = Checksum(rest.first(piece), checksum);
      rest = rest.subspan(piece);
    }
    for (Decoder in(bytes); in.remaining() > 0;) slice->push_back(in.U64());
  }
  if (checksum != checksums_[number]) {
    return Status(StatusCode::kCorruption, "has a filter with a wrong checksum")
        .At(file_->path(), OffsetOf(shape_, number, 0));
  }
  return std::shared_ptr<const RibbonSlice>(std::move(slice));
}

}  // namespace siltfs
