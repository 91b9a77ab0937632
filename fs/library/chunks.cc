#include "fs/library/chunks.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "chunker/chunker.h"
#include "fs/core/close_store.h"
#include "fs/library/error_code.h"
#include "fs/open/make_store.h"
#include "fs/open/open_store_parts.h"
#include "store/env/posix_env.h"

namespace siltfs::chunks {
namespace {

const Error& Closed() {
  static const Error error(ErrorCode::kClosed, "the store of chunks is closed");
  return error;
}

}  // namespace

std::string Name::ToHex() const { return ChunkName{digest}.ToHex(); }

// The parts of an open store, and the order in which they end.
class Store::Impl {
 public:
  Impl(std::unique_ptr<Env> env, FileSystemOptions options, FileSystemImpl::Parts parts)
      : env_(std::move(env)), options_(std::move(options)), parts_(std::move(parts)) {
    if (options_.read_only) return;
    parts_->reserve->Enter(SpaceReserve::Phase::kInUse);
  }
  // Commits call the chunk store, so they end before it is destroyed.
  ~Impl() { End(); }

  bool open() const { return parts_.has_value(); }
  FileSystemImpl::Parts& parts() { return *parts_; }

  Status Put(std::span<const ByteView> chunks, std::span<ChunkName> names) {
    if (!options_.read_only) SILTFS_RETURN_IF_ERROR(parts_->metadata->WaitForRoom());
    SILTFS_RETURN_IF_ERROR(parts_->chunks->Put(chunks, names));
    // An empty change: the next commit makes the chunks durable even though no record refers to
    // them.
    return StatusOf(parts_->metadata->Apply({}));
  }

  Status Close() {
    if (options_.read_only) {
      Status closed = parts_->metadata->Close();
      End();
      return closed;
    }
    parts_->jobs->Stop();
    Status closed = CloseStore({.env = *env_,
                                .store = options_.store,
                                .reserve = *parts_->reserve,
                                .superblock = parts_->superblock,
                                .index = *parts_->index,
                                .guide = parts_->guide.get(),
                                .metadata = *parts_->metadata,
                                .ids = *parts_->ids,
                                .chunks = *parts_->chunks,
                                .near_duplicates = parts_->near_duplicates.get(),
                                .maintenance = nullptr,
                                .jobs = *parts_->jobs,
                                .replay = parts_->replay.get()});
    if (!closed.Is(StatusCode::kNoSpace) || parts_->chunks->finished()) End();
    return closed;
  }

 private:
  void End() {
    if (!parts_) return;
    if (parts_->jobs) parts_->jobs->Stop();
    parts_->metadata->EndCommits();
    parts_.reset();
  }

  const std::unique_ptr<Env> env_;
  const FileSystemOptions options_;
  std::optional<FileSystemImpl::Parts> parts_;  // empty once the store is closed
};

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

Error Store::Make(const std::string& directory, const MakeOptions& options) {
  MakeStoreOptions make;
  make.path = directory;
  make.chunk_min = options.chunk_min;
  make.chunk_avg = options.chunk_avg;
  make.chunk_max = options.chunk_max;
  make.compression_level = options.compression_level;
  make.index_memory = options.index_memory;
  make.chunks_only = true;
  const std::unique_ptr<Env> env = NewPosixEnv();
  return ErrorOf(MakeStore(*env, make));
}

Error Store::Open(const std::string& directory, std::unique_ptr<Store>& store,
                  const OpenOptions& options) {
  FileSystemOptions open;
  open.store = directory;
  open.read_only = options.read_only;
  if (options.report)
    open.report = [report = options.report](const std::string& finding) { report(finding); };
  std::unique_ptr<Env> env = NewPosixEnv();
  auto parts = OpenStoreParts(*env, open, StoreContent::kChunksOnly);
  if (!parts.ok()) return ErrorOf(parts.status());
  store.reset(
      new Store(std::make_unique<Impl>(std::move(env), std::move(open), std::move(parts).value())));
  return {};
}

Error Store::Put(std::span<const std::span<const uint8_t>> chunks, std::span<Name> names) {
  if (!impl_->open()) return Closed();
  if (chunks.size() != names.size())
    return Error(ErrorCode::kInvalidArgument, "there are not as many names as chunks");
  std::vector<ChunkName> digests(chunks.size());
  const Status put = impl_->Put(chunks, digests);
  if (!put.ok()) return ErrorOf(put);
  for (size_t i = 0; i < chunks.size(); ++i)
    names[i] = {digests[i].bytes, static_cast<uint32_t>(chunks[i].size())};
  return {};
}

Error Store::Put(std::span<const uint8_t> chunk, Name& name) {
  return Put({&chunk, 1}, {&name, 1});
}

Error Store::Get(const Name& name, std::vector<uint8_t>& bytes) {
  if (!impl_->open()) return Closed();
  const auto got = impl_->parts().chunks->Get(ChunkName{name.digest}, name.length);
  if (got.ok()) {
    bytes.assign(got->bytes.begin(), got->bytes.end());
    return {};
  }
  const ChunkName digest{name.digest};
  std::optional<ChunkReader::Place> place;
  ChunkReader::Place last;
  impl_->parts().chunks->Locate({&digest, 1}, last, {&place, 1});
  if (got.status().Is(StatusCode::kCorruption) && !place)
    return Error(ErrorCode::kNotFound, got.status().ToString());
  return ErrorOf(got.status());
}

std::vector<uint32_t> Store::Cut(std::span<const uint8_t> content) const {
  return impl_->open() ? impl_->parts().chunker_tables->CutAll(content) : std::vector<uint32_t>();
}

Error Store::Sync() {
  return impl_->open() ? ErrorOf(impl_->parts().metadata->CommitAll()) : Closed();
}

Totals Store::totals() const {
  if (!impl_->open()) return {};
  const ChunkStoreTotals totals = impl_->parts().chunks->totals();
  return {totals.chunks, totals.plain_bytes, totals.stored_bytes};
}

Error Store::Close() { return impl_->open() ? ErrorOf(impl_->Close()) : Closed(); }

}  // namespace siltfs::chunks
