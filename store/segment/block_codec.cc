#include "store/segment/block_codec.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/checksum.h"
#include "store/base/thread_annotations.h"

namespace siltfs {
namespace {

// A smaller saving is not worth the decompression at every read.
constexpr uint64_t kLeastSavingPercent = 3;

struct Free {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// zstd needs some more room than the frame that it makes.
constexpr size_t kFrameSlack = 512;

// The window of a delta must reach from the end of the chunk to the beginning of its base.
int WindowLog(size_t bytes) {
  constexpr int kLeast = 10;  // of zstd
  return std::max(kLeast, static_cast<int>(std::bit_width(bytes - 1)));
}

Status OutOfMemory() { return Status(StatusCode::kOutOfMemory, "no memory for a zstd context"); }

// Idle contexts; the caller of Take owns the context until PutBack.
template <typename Context, Context* (*Create)()>
class Pool {
 public:
  using Pointer = std::unique_ptr<Context, Free>;

  Pointer Take() {
    MutexLock lock(mutex_);
    if (idle_.empty()) return Pointer(Create());
    Pointer context = std::move(idle_.back());
    idle_.pop_back();
    return context;
  }
  void PutBack(Pointer context) {
    MutexLock lock(mutex_);
    idle_.push_back(std::move(context));
  }

 private:
  Mutex mutex_;
  std::vector<Pointer> idle_ SILTFS_GUARDED_BY(mutex_);
};

Status CheckLimits(const PlainBlock& block) {
  uint64_t sum = 0;
  bool empty_chunk = false;
  for (const ChunkRecord& record : block.records) {
    sum += record.length;
    empty_chunk |= record.length == 0;
  }
  if (block.records.empty() || block.records.size() > kMaxBlockChunks || empty_chunk ||
      sum != block.plain.size() || sum > kMaxBlockPlainBytes) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("cannot make a block of {} chunks with {} bytes from {} uncompressed bytes",
                    block.records.size(), sum, block.plain.size()));
  }
  return Status::Ok();
}

Status CheckPlainBytes(const BlockHead& head) {
  uint64_t sum = 0;
  for (const ChunkRecord& record : head.records) sum += record.length;
  if (sum == head.plain_bytes && sum <= kMaxBlockPlainBytes) return Status::Ok();
  return Status(
      StatusCode::kCorruption,
      fmt::format("block has {} uncompressed bytes and chunks of {} bytes", head.plain_bytes, sum));
}

// Why a delta could not be inflated.
Status Missing(const ChunkRecord& record, const BaseRef& base, const Status& cause) {
  return Status(cause.code(), fmt::format("chunk {} is a delta, and its base {} is missing: {}",
                                          record.name.ToHex(), base.ToString(), cause.ToString()));
}

Result<BaseBytes> ReadBase(BaseSource& bases, const BaseRef& base) {
  SILTFS_ASSIGN_OR_RETURN(BaseBytes read, bases.ReadBase(base));
  if (read.bytes.size() == base.length) return read;
  return Status(StatusCode::kCorruption,
                fmt::format("the base has {} bytes, not {}", read.bytes.size(), base.length));
}

}  // namespace

class BlockCodec::Contexts {
 public:
  // The compressed bytes; empty if compression doesn't save enough.
  Result<Bytes> Compress(ByteView plain, int level) {
    auto context = compressors_.Take();
    if (!context) return OutOfMemory();
    Bytes out(plain.size() - plain.size() * kLeastSavingPercent / 100);
    size_t size =
        ZSTD_compressCCtx(context.get(), out.data(), out.size(), plain.data(), plain.size(), level);
    compressors_.PutBack(std::move(context));
    // On any failure, which can only be output that doesn't fit, store the block uncompressed.
    if (ZSTD_isError(size) || size >= plain.size()) return Bytes();
    out.resize(size);
    out.shrink_to_fit();
    return out;
  }

  // The chunk compressed with `base` as prefix; empty if it takes more than `most_bytes`.
  Result<Bytes> CompressDelta(ByteView chunk, ByteView base, int level, size_t most_bytes) {
    auto context = compressors_.Take();
    if (!context) return OutOfMemory();
    ZSTD_CCtx* const zstd = context.get();
    Bytes out(most_bytes + kFrameSlack);
    // The window descriptor in the frame takes the place of the content size, which the chunk table
    // has. The frame's checksum shows a wrong base.
    size_t size = 0;
    for (const auto& [parameter, value] :
         {std::pair(ZSTD_c_compressionLevel, level),
          std::pair(ZSTD_c_windowLog, WindowLog(chunk.size() + base.size())),
          std::pair(ZSTD_c_contentSizeFlag, 0), std::pair(ZSTD_c_checksumFlag, 1)}) {
      if (!ZSTD_isError(size)) size = ZSTD_CCtx_setParameter(zstd, parameter, value);
    }
    if (!ZSTD_isError(size)) size = ZSTD_CCtx_refPrefix(zstd, base.data(), base.size());
    if (!ZSTD_isError(size))
      size = ZSTD_compress2(zstd, out.data(), out.size(), chunk.data(), chunk.size());
    // Clears the parameters and the reference to the base.
    const size_t reset = ZSTD_CCtx_reset(zstd, ZSTD_reset_session_and_parameters);
    if (!ZSTD_isError(reset)) compressors_.PutBack(std::move(context));
    // As in Compress, any failure means that the output doesn't fit.
    if (ZSTD_isError(size) || size > most_bytes) return Bytes();
    out.resize(size);
    out.shrink_to_fit();
    return out;
  }

  // Decompresses the payload, which must fill `out` exactly.
  Status Decompress(ByteView payload, MutableByteView out) {
    auto context = decompressors_.Take();
    if (!context) return OutOfMemory();
    size_t size =
        ZSTD_decompressDCtx(context.get(), out.data(), out.size(), payload.data(), payload.size());
    decompressors_.PutBack(std::move(context));
    return CheckSize(size, out, "block's payload");
  }

  // Decompresses a delta, which must fill `out` exactly.
  Status DecompressDelta(ByteView frame, ByteView base, MutableByteView out) {
    auto context = decompressors_.Take();
    if (!context) return OutOfMemory();
    // A prefix is always plain bytes, also if the base begins like a dictionary of zstd.
    size_t size = ZSTD_DCtx_refPrefix(context.get(), base.data(), base.size());
    if (!ZSTD_isError(size)) {
      size = ZSTD_decompressDCtx(context.get(), out.data(), out.size(), frame.data(), frame.size());
    }
    const size_t reset = ZSTD_DCtx_reset(context.get(), ZSTD_reset_session_and_parameters);
    if (!ZSTD_isError(reset)) decompressors_.PutBack(std::move(context));
    return CheckSize(size, out, "delta");
  }

 private:
  // OK if zstd has returned the size of the output, and not an error.
  static Status CheckSize(size_t size, MutableByteView out, std::string_view what) {
    if (ZSTD_isError(size)) {
      return Status(StatusCode::kCorruption,
                    fmt::format("{} doesn't decompress: {}", what, ZSTD_getErrorName(size)));
    }
    if (size != out.size()) {
      return Status(StatusCode::kCorruption,
                    fmt::format("{} decompresses to {} bytes, not to {}", what, size, out.size()));
    }
    return Status::Ok();
  }

  Pool<ZSTD_CCtx, ZSTD_createCCtx> compressors_;
  Pool<ZSTD_DCtx, ZSTD_createDCtx> decompressors_;
};

Status ValidateCompression(const Compression& compression) {
  if (compression.codec == BlockCodecId::kNone) return Status::Ok();
  if (compression.codec != BlockCodecId::kZstd) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("there is no codec {}", static_cast<unsigned>(compression.codec)));
  }
  if (compression.level < ZSTD_minCLevel() || compression.level > ZSTD_maxCLevel()) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("zstd has no level {}, only {} to {}", compression.level,
                              ZSTD_minCLevel(), ZSTD_maxCLevel()));
  }
  return Status::Ok();
}

BlockCodec::BlockCodec() : contexts_(std::make_unique<Contexts>()) {}
BlockCodec::~BlockCodec() = default;

// The compressed bytes; empty if they are to be stored uncompressed.
Result<Bytes> BlockCodec::EncodeWhole(ByteView plain, const Compression& compression) const {
  if (compression.codec == BlockCodecId::kNone || plain.empty()) return Bytes();
  return contexts_->Compress(plain, compression.level);
}

Result<EncodedBlock> BlockCodec::Encode(PlainBlock block, const Compression& compression) const {
  SILTFS_RETURN_IF_ERROR(CheckLimits(block));
  SILTFS_RETURN_IF_ERROR(ValidateCompression(compression));
  EncodedBlock encoded;
  encoded.plain_bytes = static_cast<uint32_t>(block.plain.size());
  encoded.records = std::move(block.records);
  SILTFS_ASSIGN_OR_RETURN(encoded.payload, EncodeWhole(block.plain, compression));
  if (encoded.payload.empty()) {
    encoded.payload = std::move(block.plain);
  } else {
    encoded.codec = BlockCodecId::kZstd;
  }
  encoded.payload_checksum = Checksum(encoded.payload);
  return encoded;
}

Result<Bytes> BlockCodec::EncodeDelta(ByteView chunk, ByteView base, int level,
                                      size_t most_bytes) const {
  SILTFS_RETURN_IF_ERROR(ValidateCompression({BlockCodecId::kZstd, level}));
  if (chunk.empty() || chunk.size() > kMaxBlockPlainBytes || base.empty() ||
      base.size() > kMaxBlockPlainBytes) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("cannot make a delta of {} bytes against a base of {}", chunk.size(),
                              base.size()));
  }
  return contexts_->CompressDelta(chunk, base, level, std::min(most_bytes, chunk.size()));
}

Result<EncodedBlock> BlockCodec::EncodeWithDeltas(PlainBlock block,
                                                  const std::vector<DeltaFrame>& deltas,
                                                  const Compression& compression) const {
  if (deltas.empty()) return Encode(std::move(block), compression);
  SILTFS_RETURN_IF_ERROR(CheckLimits(block));
  SILTFS_RETURN_IF_ERROR(ValidateCompression(compression));
  Bytes whole;
  size_t offset = 0;
  auto delta = deltas.begin();
  for (size_t i = 0; i < block.records.size(); ++i) {
    const auto begin = block.plain.begin() + static_cast<std::ptrdiff_t>(offset);
    const uint32_t length = block.records[i].length;
    if (delta != deltas.end() && delta->delta.position == i) {
      ++delta;
    } else {
      whole.insert(whole.end(), begin, begin + length);
    }
    offset += length;
  }
  if (delta != deltas.end())
    return Status(StatusCode::kInvalidArgument, "the block's deltas are out of order");
  SILTFS_ASSIGN_OR_RETURN(const Bytes compressed, EncodeWhole(whole, compression));
  EncodedBlock encoded;
  encoded.codec = BlockCodecId::kZstdDelta;
  encoded.payload = compressed.empty()
                        ? EncodeDeltaPayload(deltas, BlockCodecId::kNone, whole)
                        : EncodeDeltaPayload(deltas, BlockCodecId::kZstd, compressed);
  if (encoded.payload.size() >= block.plain.size()) return Encode(std::move(block), compression);
  encoded.plain_bytes = static_cast<uint32_t>(block.plain.size());
  encoded.records = std::move(block.records);
  encoded.payload_checksum = Checksum(encoded.payload);
  return encoded;
}

Status BlockCodec::Decompress(BlockCodecId codec, ByteView payload, MutableByteView out) const {
  if (codec == BlockCodecId::kZstd) return contexts_->Decompress(payload, out);
  if (payload.size() != out.size()) {
    return Status(StatusCode::kCorruption,
                  "block's payload is not as long as its uncompressed bytes");
  }
  std::copy(payload.begin(), payload.end(), out.begin());
  return Status::Ok();
}

Result<Buffer> BlockCodec::DecodePayload(const BlockHead& head, ByteView payload) const {
  if (head.codec == BlockCodecId::kZstdDelta)
    return Status(StatusCode::kInvalidArgument, "the block has deltas");
  SILTFS_RETURN_IF_ERROR(CheckPlainBytes(head));
  Buffer plain = buffers_.Take(head.plain_bytes);
  SILTFS_RETURN_IF_ERROR(Decompress(head.codec, payload, plain));
  return plain;
}

Result<DecodedBlockPtr> BlockCodec::Decode(BlockHead head, ByteView payload,
                                           BaseSource* bases) const {
  if (head.codec == BlockCodecId::kZstdDelta) {
    SILTFS_ASSIGN_OR_RETURN(DecodedBlock::Chunks chunks, DecodeDeltas(head, payload, bases));
    return DecodedBlockPtr(std::make_shared<DecodedBlock>(std::move(head), std::move(chunks)));
  }
  SILTFS_ASSIGN_OR_RETURN(Buffer plain, DecodePayload(head, payload));
  return DecodedBlockPtr(std::make_shared<DecodedBlock>(std::move(head), std::move(plain)));
}

Result<DecodedBlock::Chunks> BlockCodec::DecodeDeltas(const BlockHead& head, ByteView payload,
                                                      BaseSource* bases) const {
  SILTFS_RETURN_IF_ERROR(CheckPlainBytes(head));
  SILTFS_ASSIGN_OR_RETURN(DeltaPayload parts, DecodeDeltaPayload(head, payload));
  DecodedBlock::Chunks chunks;
  // The whole chunks come first in the buffer, because they are decompressed together.
  chunks.bytes = buffers_.Take(bases == nullptr ? parts.whole_plain : head.plain_bytes);
  SILTFS_RETURN_IF_ERROR(Decompress(parts.whole_codec, parts.whole,
                                    MutableByteView(chunks.bytes).first(parts.whole_plain)));
  chunks.offsets.reserve(head.records.size());
  uint32_t offset = 0;
  auto delta = parts.deltas.begin();
  for (size_t i = 0; i < head.records.size(); ++i) {
    if (delta != parts.deltas.end() && delta->position == i) {
      chunks.offsets.push_back(DecodedBlock::Chunks::kMissing);
      ++delta;
      continue;
    }
    chunks.offsets.push_back(offset);
    offset += head.records[i].length;
  }
  if (bases != nullptr) {
    chunks.failures.resize(parts.deltas.size());
    InflateAll(head, parts, *bases, offset, chunks);
  } else {
    for (const ByteView frame : parts.frames) {
      chunks.frames.insert(chunks.frames.end(), frame.begin(), frame.end());
      chunks.frame_ends.push_back(static_cast<uint32_t>(chunks.frames.size()));
    }
  }
  chunks.bases = std::move(parts.deltas);
  return chunks;
}

Result<Buffer> BlockCodec::Inflate(const DecodedBlock& block, size_t position,
                                   BaseSource& bases) const {
  const auto delta = position < block.chunk_count() ? block.delta(position) : std::nullopt;
  if (!delta) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("chunk {} of the block is no delta", position));
  }
  const ChunkRecord& record = block.records()[position];
  const Result<BaseBytes> base = ReadBase(bases, *delta->base);
  if (!base.ok()) return Missing(record, *delta->base, base.status());
  Buffer chunk = buffers_.Take(record.length);
  const Status inflated = contexts_->DecompressDelta(delta->frame, base->bytes, chunk);
  if (!inflated.ok()) return Missing(record, *delta->base, inflated);
  return chunk;
}

// Inflates the deltas to `offset` and behind. The deltas are taken by base, so that each base is
// read once, and only one is held at a time. The bases come in the order in which they are first
// needed, because neighbours often have their bases in one block.
void BlockCodec::InflateAll(const BlockHead& head, const DeltaPayload& payload, BaseSource& bases,
                            uint32_t offset, DecodedBlock::Chunks& chunks) const {
  std::vector<size_t> order(payload.deltas.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::map<BaseRef, size_t> first_use;
  for (size_t i = 0; i < order.size(); ++i) first_use.emplace(payload.deltas[i].base, i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return first_use.at(payload.deltas[a].base) < first_use.at(payload.deltas[b].base);
  });
  for (size_t first = 0; first < order.size();) {
    const BaseRef& base = payload.deltas[order[first]].base;
    const Result<BaseBytes> read = ReadBase(bases, base);
    for (; first < order.size() && payload.deltas[order[first]].base == base; ++first) {
      const size_t i = order[first];
      const uint32_t position = payload.deltas[i].position;
      const uint32_t length = head.records[position].length;
      const MutableByteView out = MutableByteView(chunks.bytes).subspan(offset, length);
      const Status inflated = read.ok()
                                  ? contexts_->DecompressDelta(payload.frames[i], read->bytes, out)
                                  : read.status();
      if (inflated.ok()) {
        chunks.offsets[position] = offset;
      } else {
        chunks.failures[i] = Missing(head.records[position], base, inflated);
      }
      offset += length;
    }
  }
}

}  // namespace siltfs
