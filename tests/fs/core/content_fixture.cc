#include "tests/fs/core/content_fixture.h"

#include <algorithm>
#include <array>

#include "chunker/parameters.h"
#include "fs/interface/file_system.h"
#include "fs/recipe/recipe_reader.h"
#include "index/open_index.h"
#include "store/segment/segment_files.h"
#include "tests/support/catch.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {
namespace {

const std::string kStore = "/store";

}  // namespace

ChunkStoreFixture::ChunkStoreFixture(size_t block_cache_bytes) {
  std::array<uint8_t, RabinPolynomial::kRandomBytes> random;
  REQUIRE_OK(env_.FillRandom(random));
  auto polynomial = RabinPolynomial::FromRandom(random);
  REQUIRE_OK(polynomial);
  const auto parameters = ChunkerParameters::Proportional(8192, *polynomial);
  auto tables = ChunkerTables::Create(parameters);
  REQUIRE_OK(tables);
  tables_ = std::move(tables).value();

  REQUIRE_OK(env_.CreateDirectory(kStore));
  REQUIRE_OK(env_.CreateDirectory(kStore + "/index"));
  REQUIRE_OK(CreateSegmentsDirectory(env_, kStore));
  ForgetSegments(env_, kStore);
  auto index = OpenIndex(env_, {.engine = IndexEngine::kMap, .directory = kStore + "/index"});
  REQUIRE_OK(index);
  index_ = std::move(index).value();

  ids_ = std::make_unique<IdAllocator>(IdRanges(),
                                       [](const std::vector<Mutation>&) { return Status::Ok(); });
  REQUIRE_OK(ids_->BeginMount());
  const FileSystemOptions usual;
  ChunkStoreOptions options;
  options.store = kStore;
  options.segments = SegmentsOf(env_, kStore);
  options.superblock.uuid.bytes.fill(7);
  options.superblock.chunk_max = parameters.max;
  options.ids = ids_.get();
  options.worker_threads = usual.worker_threads;
  options.pipeline_bytes = usual.pipeline_bytes;
  options.block_cache_bytes = block_cache_bytes;
  options.readahead_threads = usual.readahead_threads;
  options.footer_cache_bytes = usual.footer_cache_bytes;
  auto parts = ChunkParts::Open(env_, *index_, std::move(options), {}, {});
  REQUIRE_OK(parts);
  parts_ = std::move(parts).value();
  chunks_ = std::make_unique<ChunkStore>(*parts_);
}

void ChunkStoreFixture::Flush() {
  std::vector<Mutation> extra;
  REQUIRE_OK(chunks_->PrepareCommit(++commits_, extra));
  chunks_->CommitDone(commits_);
}

uint64_t ChunkStoreFixture::StoredChunks() {
  Flush();
  return chunks_->totals().chunks;
}

uint64_t ChunkStoreFixture::Reads() {
  const MemorySegmentStore* const memory = MemorySegments(env_);
  return env_.Calls(SimCall::kRead) + (memory == nullptr ? 0 : memory->Calls(SegmentCall::kRead));
}

TestFile::TestFile(ChunkStoreFixture& store)
    : store_(store), content_(store.chunks(), store.tables()) {}

void TestFile::Write(uint64_t offset, ByteView data) {
  REQUIRE_OK(content_.Write(record_, overlay_, offset, data));
  record_.has_overlay = !overlay_.empty();
  if (expected_.size() < offset + data.size()) expected_.resize(offset + data.size());
  std::copy(data.begin(), data.end(), expected_.begin() + static_cast<ptrdiff_t>(offset));
  REQUIRE(record_.size == expected_.size());
  if (FileContent::NeedsFold(overlay_)) FoldSome();
}

void TestFile::Truncate(uint64_t size) {
  REQUIRE_OK(content_.Truncate(record_, overlay_, size));
  record_.has_overlay = !overlay_.empty();
  expected_.resize(size);
}

void TestFile::PunchHole(uint64_t offset, uint64_t length) {
  FileContent::PunchHole(record_, overlay_, offset, length);
  record_.has_overlay = !overlay_.empty();
  const uint64_t begin = std::min<uint64_t>(offset, expected_.size());
  const uint64_t end = std::min<uint64_t>(offset + length, expected_.size());
  std::fill(expected_.begin() + static_cast<ptrdiff_t>(begin),
            expected_.begin() + static_cast<ptrdiff_t>(end), uint8_t{0});
}

void TestFile::Clone(TestFile& source, const CloneRange& range) {
  source.Fold();
  REQUIRE_OK(content_.Clone(source.record_, range, record_, overlay_));
  const auto from = source.expected_.begin() + static_cast<ptrdiff_t>(range.source_offset);
  const Bytes copied(from, from + static_cast<ptrdiff_t>(range.length));
  expected_.resize(std::max<uint64_t>(expected_.size(), range.target_offset + range.length));
  std::copy(copied.begin(), copied.end(),
            expected_.begin() + static_cast<ptrdiff_t>(range.target_offset));
  // Set this field of the record, because nothing saves the overlay here.
  record_.has_overlay = !overlay_.empty();
}

uint64_t TestFile::FindData(uint64_t offset) const {
  auto found = content_.FindData(record_, overlay_, offset);
  REQUIRE_OK(found);
  return *found;
}

uint64_t TestFile::FindHole(uint64_t offset) const {
  auto found = content_.FindHole(record_, overlay_, offset);
  REQUIRE_OK(found);
  return *found;
}

void TestFile::Fold(FileContent::FoldMode mode) {
  REQUIRE_OK(content_.Fold(record_, overlay_, mode));
  record_.has_overlay = !overlay_.empty();
}

void TestFile::FoldSome(FileContent::FoldMode mode) {
  auto next = content_.FoldSome(record_, overlay_, fold_from_, mode);
  REQUIRE_OK(next);
  fold_from_ = *next;
  record_.has_overlay = !overlay_.empty();
}

void TestFile::FoldAndCheck(FileContent::FoldMode mode) {
  Fold(mode);
  REQUIRE(record_.recipe_limit == record_.recipe.size());
  if (mode == FileContent::FoldMode::kAll) {
    REQUIRE(overlay_.empty());
    REQUIRE(record_.recipe.size() == record_.size);
  }
  RequireContent();

  uint64_t at = 0;
  bool after_hole = false;
  for (const RecipeEntry& entry : Entries()) {
    REQUIRE(entry.length > 0);
    if (!entry.is_hole()) REQUIRE(entry.length <= store_.tables()->parameters().max);
    REQUIRE_FALSE((entry.is_hole() && after_hole));
    after_hole = entry.is_hole();
    at += entry.length;
  }
  REQUIRE(at == record_.recipe.size());
}

Bytes TestFile::Read(uint64_t offset, size_t size) const {
  Bytes bytes(size);
  auto got = content_.Read(record_, overlay_, offset, bytes);
  REQUIRE_OK(got);
  bytes.resize(*got);
  return bytes;
}

void TestFile::RequireContent() const {
  REQUIRE(record_.size == expected_.size());
  REQUIRE((Read(0, expected_.size() + 1) == expected_));
}

std::vector<RecipeEntry> TestFile::Entries() const {
  std::vector<RecipeEntry> entries;
  RecipeReader reader(store_.chunks(), record_.recipe);
  for (reader.Seek(0); reader.Valid(); reader.Next()) entries.push_back(reader.entry());
  REQUIRE_OK(reader.status());
  return entries;
}

}  // namespace siltfs::testing
