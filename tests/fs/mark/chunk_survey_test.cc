// The survey of chunks, compared with counts that are made one by one.
#include "fs/mark/chunk_survey.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/records/lineage.h"
#include "fs/versions/version_key.h"
#include "tests/fs/mark/mark_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kLength = 8192;  // of the chunks of MarkStore

SegmentRecords RecordsOf(const MarkStore&) {
  SegmentRecords records;
  for (SegmentId id = 1; id <= MarkStore::kChunks / MarkStore::kSegmentChunks; ++id) {
    SegmentRecord record;
    record.sealed = true;
    record.length = 1000 * id;
    record.chunks = MarkStore::kSegmentChunks;
    records.emplace_back(id, record);
  }
  return records;
}

ChunkSurveyOptions Options(size_t memory_bytes = 16u << 20) {
  ChunkSurveyOptions options;
  options.spill_directory = kSpill;
  options.memory_bytes = memory_bytes;
  options.minimum_free_bytes = 0;
  return options;
}

ChunkSurvey Take(MarkStore& store, const ChunkSurveyOptions& options) {
  auto survey = SurveyChunks(store.env, *store.metadata.Snapshot(), store.metadata.nodes,
                             *store.index, RecordsOf(store), options);
  REQUIRE_OK(survey);
  return *survey;
}

uint64_t SumOf(const auto& classes) {
  uint64_t chunks = 0;
  for (const ChunkClass& one : classes) chunks += one.chunks;
  return chunks;
}

// The files have no names, and the caller removes the directory.
bool SpillIsEmpty(MarkStore& store) {
  const auto listed = store.env.ListDirectory(kSpill);
  return listed.ok() ? listed->empty() : listed.status().Is(StatusCode::kNotFound);
}

// The references to chunk `number` of a MarkStore.
uint64_t ReferencesOf(uint64_t number) {
  uint64_t references = MarkStore::IsDead(number) ? 0 : 2;
  if (number >= 51 && number < 60) ++references;
  if (number >= 51 && number < 59) references += 20;
  return references;
}

}  // namespace

TEST_CASE("classes of lengths and references begin where the class before ends") {
  for (size_t i = 0; i + 1 < kLengthClasses; ++i) {
    INFO(i);
    CHECK(FirstLengthOf(i) < FirstLengthOf(i + 1));
    CHECK(LengthClassOf(FirstLengthOf(i)) == i);
    CHECK(LengthClassOf(FirstLengthOf(i + 1) - 1) == i);
  }
  CHECK(LengthClassOf((1u << 24) - 1) == kLengthClasses - 1);
  CHECK(FirstLengthOf(LengthClassOf(8192)) == 8192);
  for (size_t i = 0; i + 1 < kReferenceClasses; ++i) {
    INFO(i);
    CHECK(ReferenceClassOf(FirstReferencesOf(i)) == i);
    CHECK(ReferenceClassOf(FirstReferencesOf(i + 1) - 1) == i);
  }
  CHECK(FirstReferencesOf(4) == 5);
  CHECK(FirstReferencesOf(5) == 9);
  CHECK(ReferenceClassOf(UINT64_MAX) == kReferenceClasses - 1);
}

TEST_CASE("a survey counts each reference, also through shared nodes, and each segment's chunks") {
  const IndexEngine engine = GENERATE(IndexEngine::kMap, IndexEngine::kSilt);
  // With little memory, references are sorted in files.
  const size_t memory = GENERATE(size_t{4096}, size_t{16} << 20);
  MarkStore store(engine);
  const ChunkSurvey survey = Take(store, Options(memory));
  std::map<size_t, uint64_t> shared;
  uint64_t chunks = 0;
  uint64_t references = 0;
  for (uint64_t i = 0; i < MarkStore::kChunks + 500; ++i) {
    const uint64_t count = ReferencesOf(i);
    if (count == 0) continue;
    ++chunks;
    references += count;
    ++shared[ReferenceClassOf(count)];
  }
  CHECK(survey.sample_bits == 0);
  CHECK(survey.references == references);
  CHECK(survey.files == ChunkClass{chunks, chunks * kLength});
  CHECK(SumOf(survey.lengths) == chunks);
  CHECK(survey.lengths[LengthClassOf(kLength)] == survey.files);
  CHECK(SumOf(survey.shared) == chunks);
  for (const auto& [place, count] : shared) CHECK(survey.shared[place].chunks == count);
  CHECK(survey.snapshots == ChunkClass{});
  CHECK(survey.nodes.chunks == store.metadata.nodes.nodes.size());
  CHECK(survey.nodes_read == survey.nodes.chunks);
  // 450 chunks without an entry; the nodes have none, either.
  uint64_t live = 0;
  for (const SegmentUse& segment : survey.segments) {
    INFO(segment.id);
    CHECK(segment.indexed == MarkStore::kSegmentChunks);
    CHECK(segment.live == store.expected[segment.id]);
    CHECK(segment.bytes == 1000 * segment.id);
    CHECK(*survey.LiveShare(segment) == static_cast<double>(segment.live) / 100);
    live += segment.live;
  }
  CHECK(survey.not_indexed == chunks + survey.nodes.chunks - live);
  CHECK((survey.spilled_bytes > 0) == (memory == 4096));
  CHECK(SpillIsEmpty(store));
}

TEST_CASE("a sample has about its share of everything, and reads that part of the index only") {
  MarkStore store(IndexEngine::kSilt);
  const ChunkSurvey all = Take(store, Options());
  ChunkSurveyOptions options = Options();
  options.expected_references = 20'000;
  options.most_references = 6'000;
  const ChunkSurvey sample = Take(store, options);
  REQUIRE(sample.sample_bits == 2);
  REQUIRE(sample.Scale() == 4);
  const auto near = [](uint64_t estimate, uint64_t exact) {
    return estimate > exact * 85 / 100 && estimate < exact * 115 / 100;
  };
  CHECK(near(sample.files.chunks * 4, all.files.chunks));
  CHECK(near(sample.references * 4, all.references));
  CHECK(SumOf(sample.shared) == sample.files.chunks);
  CHECK(SumOf(sample.lengths) == sample.files.chunks);
  uint64_t indexed = 0;
  double shares = 0;
  for (const SegmentUse& segment : sample.segments) {
    indexed += segment.indexed;
    CHECK(segment.live <= segment.indexed);
    shares += sample.LiveShare(segment).value_or(0);
  }
  CHECK(near(indexed * 4, MarkStore::kChunks));
  // A tenth of the chunks, and one segment of ninety, are dead.
  CHECK(shares / static_cast<double>(sample.segments.size()) > 0.85);
  CHECK(shares / static_cast<double>(sample.segments.size()) < 0.93);
}

TEST_CASE("chunks that only snapshots or received snapshots show are counted apart") {
  MarkStore store(IndexEngine::kMap);
  const ChunkSurvey before = Take(store, Options());
  store.metadata.Set(
      VersionKey(InodeKey(2), 1),
      EncodeVersion(FileOf(Build(store.metadata.nodes, NumberedChunks(20'000, 7))).Encode()));
  store.metadata.Set(InodeKey(InLineage(3, 9)),
                     FileOf(Build(store.metadata.nodes, NumberedChunks(30'000, 5))).Encode());
  // This one has a chunk of the present files, too.
  store.metadata.Set(InodeKey(InLineage(3, 10)),
                     FileOf(Build(store.metadata.nodes, NumberedChunks(51, 1))).Encode());
  const ChunkSurvey survey = Take(store, Options());
  CHECK(survey.snapshots == ChunkClass{12, 12 * kLength});
  CHECK(survey.files == before.files);
  CHECK(survey.references == before.references);
  CHECK(survey.shared == before.shared);
}

TEST_CASE("the base of a delta is in use, although no file refers to it") {
  MarkStore store(IndexEngine::kMap);
  ChunkSurveyOptions options = Options();
  options.more = [](const std::function<Status(const ChunkName&)>& visit) {
    return visit(NumberedName(700));
  };
  const ChunkSurvey before = Take(store, Options());
  const ChunkSurvey survey = Take(store, options);
  REQUIRE(before.segments[7].live == 0);
  CHECK(survey.segments[7].live == 1);
  CHECK(survey.files == before.files);
  CHECK(survey.snapshots == before.snapshots);
}

TEST_CASE("entries that lead into removed segments count as missing") {
  MarkStore store(IndexEngine::kMap);
  const ChunkSurvey before = Take(store, Options());
  ChunkSurveyOptions options = Options();
  options.gone = [](SegmentId id) { return id == 3; };
  const ChunkSurvey survey = Take(store, options);
  CHECK(survey.segments[2].indexed == 0);
  CHECK(survey.not_indexed == before.not_indexed + before.segments[2].live);
  CHECK_FALSE(survey.LiveShare(survey.segments[2]).has_value());
}

TEST_CASE("a survey reports its progress in three steps, and ends when the caller wants it") {
  MarkStore store(IndexEngine::kSilt);
  std::vector<unsigned> steps;
  ChunkSurveyOptions options = Options(4096);
  options.expected_inodes = 24;
  options.on_progress = [&](const SurveyProgress& progress) {
    if (steps.empty() || steps.back() != progress.step) steps.push_back(progress.step);
    CHECK(!progress.name.empty());
    return Status::Ok();
  };
  Take(store, options);
  CHECK(steps == std::vector<unsigned>{1, 2, 3});
  for (const unsigned last : {1u, 2u, 3u}) {
    options.on_progress = [last](const SurveyProgress& progress) {
      return progress.step < last ? Status::Ok() : Status(StatusCode::kInterrupted, "enough");
    };
    const auto ended = SurveyChunks(store.env, *store.metadata.Snapshot(), store.metadata.nodes,
                                    *store.index, RecordsOf(store), options);
    REQUIRE_CODE(ended, kInterrupted);
    CHECK(SpillIsEmpty(store));
  }
}

TEST_CASE("a damaged recipe fails the survey and names the inode") {
  MarkStore store(IndexEngine::kMap);
  store.metadata.Set(InodeKey(77), "no inode");
  const auto survey = SurveyChunks(store.env, *store.metadata.Snapshot(), store.metadata.nodes,
                                   *store.index, RecordsOf(store), Options());
  REQUIRE_CODE(survey, kCorruption);
  CHECK(survey.status().ToString().find("inode 77") != std::string::npos);
}

}  // namespace siltfs::testing
