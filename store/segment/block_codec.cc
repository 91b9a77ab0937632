#include "store/segment/block_codec.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
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

  // Decompresses the payload, which must fill `out` exactly.
  Status Decompress(ByteView payload, Buffer& out) {
    auto context = decompressors_.Take();
    if (!context) return OutOfMemory();
    size_t size =
        ZSTD_decompressDCtx(context.get(), out.data(), out.size(), payload.data(), payload.size());
    decompressors_.PutBack(std::move(context));
    if (ZSTD_isError(size)) {
      return Status(StatusCode::kCorruption,
                    fmt::format("block's payload doesn't decompress: {}", ZSTD_getErrorName(size)));
    }
    if (size != out.size()) {
      return Status(
          StatusCode::kCorruption,
          fmt::format("block's payload decompresses to {} bytes, not to {}", size, out.size()));
    }
    return Status::Ok();
  }

 private:
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

Result<EncodedBlock> BlockCodec::Encode(PlainBlock block, const Compression& compression) const {
  SILTFS_RETURN_IF_ERROR(CheckLimits(block));
  SILTFS_RETURN_IF_ERROR(ValidateCompression(compression));
  EncodedBlock encoded;
  encoded.plain_bytes = static_cast<uint32_t>(block.plain.size());
  encoded.records = std::move(block.records);
  if (compression.codec == BlockCodecId::kZstd) {
    SILTFS_ASSIGN_OR_RETURN(encoded.payload, contexts_->Compress(block.plain, compression.level));
  }
  if (encoded.payload.empty()) {
    encoded.payload = std::move(block.plain);
  } else {
    encoded.codec = BlockCodecId::kZstd;
  }
  encoded.payload_checksum = Checksum(encoded.payload);
  return encoded;
}

Result<Buffer> BlockCodec::DecodePayload(const BlockHead& head, ByteView payload) const {
  if (head.codec == BlockCodecId::kNone) {
    if (payload.size() != head.plain_bytes) {
      return Status(StatusCode::kCorruption,
                    "block's payload is not as long as its uncompressed bytes");
    }
    Buffer plain = buffers_.Take(payload.size());
    std::copy(payload.begin(), payload.end(), plain.begin());
    return plain;
  }
  if (head.plain_bytes > kMaxBlockPlainBytes) {
    return Status(StatusCode::kCorruption, "block is larger than the format allows");
  }
  Buffer plain = buffers_.Take(head.plain_bytes);
  SILTFS_RETURN_IF_ERROR(contexts_->Decompress(payload, plain));
  return plain;
}

}  // namespace siltfs
