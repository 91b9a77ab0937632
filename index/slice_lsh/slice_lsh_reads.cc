#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "index/flash/lookup_batch.h"
#include "index/slice_lsh/slice_lsh_impl.h"

namespace siltfs {
namespace {

// Batches with at most this many pages are not worth a queue.
constexpr size_t kFewPages = 2;

// An entry of one of the chunks' super-features.
struct Match {
  SliceLshPlace place;
  uint32_t tables = 0;  // a bit for each
  uint64_t age = 0;     // the slicetable, and the position in its page
};

// Reads one page and collects the entries of a key.
class PageLookup {
 public:
  PageLookup(const PageFiles& files, PageAddress page, uint64_t key, uint32_t most)
      : files_(&files), page_(page), key_(key), most_(most) {}

  std::optional<PageRead> NextRead() {
    if (!status_.ok() || std::exchange(begun_, true)) return std::nullopt;
    const auto place = files_->Resolve(page_);
    // Only damage leads to a page that does not exist.
    damaged_ = !place;
    if (!place) return std::nullopt;
    seed_ = place->seed;
    return PageRead{.file = place->file, .offset = place->offset};
  }

  void Take(const Status& status, ConstPageBytes bytes) {
    read_ = true;
    if (!status.ok()) {
      status_ = status;
      status_.IgnoreError("the caller checks it when the lookup has ended");
      return;
    }
    const bool whole = CheckFlashPage(bytes, page_.page(), seed_).has_value();
    const auto count = whole ? LshEntriesOf(bytes) : std::nullopt;
    damaged_ = !count;
    for (uint32_t i = 0; i < count.value_or(0) && found_.size() < most_; ++i) {
      const LshEntry entry = ReadLshEntry(bytes, i);
      if (entry.key == key_) found_.emplace_back(entry.place, i);
    }
  }

  // Places and their positions in the page.
  const std::vector<std::pair<SliceLshPlace, uint32_t>>& found() const { return found_; }
  bool read() const { return read_; }
  bool damaged() const { return damaged_; }
  const Status& status() const { return status_; }

 private:
  const PageFiles* files_;
  PageAddress page_;
  uint64_t key_;
  uint32_t most_;
  uint64_t seed_ = 0;
  bool begun_ = false;
  bool read_ = false;
  bool damaged_ = false;
  std::vector<std::pair<SliceLshPlace, uint32_t>> found_;
  Status status_;
};

// The candidates of one chunk in their order.
std::vector<SliceLshCandidate> CandidatesOf(std::vector<Match>& matches) {
  // A place may be in several tables, and twice in one table while the buffer is merged.
  std::ranges::sort(matches, {},
                    [](const Match& match) { return std::pair(match.place, match.age); });
  std::vector<Match> places;
  for (const Match& match : matches) {
    if (places.empty() || places.back().place != match.place) {
      places.push_back(match);
    } else {
      places.back().tables |= match.tables;
    }
  }
  std::ranges::stable_sort(places, [](const Match& a, const Match& b) {
    const int a_tables = std::popcount(a.tables);
    const int b_tables = std::popcount(b.tables);
    return a_tables != b_tables ? a_tables > b_tables : a.age < b.age;
  });
  std::vector<SliceLshCandidate> candidates;
  for (const Match& match : places) {
    candidates.push_back(
        {.place = match.place, .tables = static_cast<unsigned>(std::popcount(match.tables))});
  }
  return candidates;
}

}  // namespace

// The pages of a chunk come one after the other, and those of different tables alternate. So they
// are in the read queue together, and with a directory for each table on different devices.
class SliceLshImpl::FindBatch final : public LookupBatch<PageLookup> {
 public:
  FindBatch(SliceLshImpl& lsh, std::span<const uint64_t> features)
      : lsh_(lsh),
        features_(features),
        tables_of_chunk_(lsh.header_.shape.tables),
        matches_(features.size() / tables_of_chunk_),
        pin_(lsh.files_.Pin()) {
    TakeMoment();
  }
  ~FindBatch() override {
    lsh_.flash_reads_ += pages_read_;
    lsh_.damaged_pages_ += damaged_pages_;
  }

  size_t size() const override { return matches_.size() * targets_.size(); }
  PageLookup Prepare(size_t i) override {
    const Target& target = targets_[i % targets_.size()];
    const uint64_t key = KeyOf(i / targets_.size(), target.table);
    return {lsh_.files_, target.slicetable.PageOf(key), key, lsh_.header_.shape.most_per_feature};
  }
  void Begin(PageLookup&) override {}
  void End(size_t i, const PageLookup& lookup) override {
    const Target& target = targets_[i % targets_.size()];
    pages_read_ += lookup.read() ? 1 : 0;
    damaged_pages_ += lookup.damaged() ? 1 : 0;
    if (!lookup.status().ok() && status_.ok()) status_ = lookup.status();
    for (const auto& [place, position] : lookup.found()) {
      matches_[i / targets_.size()].push_back({.place = place,
                                               .tables = 1U << target.table,
                                               .age = uint64_t{target.level} << 32 | position});
    }
  }

  std::vector<Match>& MatchesOf(size_t chunk) { return matches_[chunk]; }
  Status TakeStatus() { return std::move(status_); }

 private:
  struct Target {
    unsigned table = 0;
    uint32_t level = 0;  // 1 is the newest slicetable; 0 is the buffer
    LshTable slicetable;
  };

  uint64_t KeyOf(size_t chunk, unsigned table) const {
    return lsh_.KeyOf(table, features_[chunk * tables_of_chunk_ + table]);
  }

  // Finds what the buffer has, and notes the slicetables of the same moment.
  void TakeMoment() {
    ReaderLock lock(lsh_.mutex_);
    for (size_t chunk = 0; chunk < matches_.size() && lsh_.buffer_->size() > 0; ++chunk) {
      for (unsigned table = 0; table < tables_of_chunk_; ++table) {
        uint64_t position = 0;
        lsh_.buffer_->Find(table, KeyOf(chunk, table), [&](const SliceLshPlace& place) {
          matches_[chunk].push_back({.place = place, .tables = 1U << table, .age = position++});
        });
      }
    }
    for (uint32_t level = 1;; ++level) {
      const size_t before = targets_.size();
      for (unsigned table = 0; table < tables_of_chunk_; ++table) {
        const LshTables& tables = *lsh_.tables_[table];
        if (level > tables.size()) continue;
        targets_.push_back(
            {.table = table, .level = level, .slicetable = tables[tables.size() - level]});
      }
      if (targets_.size() == before) break;
    }
  }

  SliceLshImpl& lsh_;
  const std::span<const uint64_t> features_;
  const unsigned tables_of_chunk_;
  std::vector<std::vector<Match>> matches_;  // by chunk
  const PageFiles::FilePin pin_;
  std::vector<Target> targets_;  // slicetables in which each chunk is looked up
  uint64_t pages_read_ = 0;
  uint64_t damaged_pages_ = 0;
  Status status_;
};

Status SliceLshImpl::Find(std::span<const uint64_t> features,
                          std::vector<std::vector<SliceLshCandidate>>& candidates) {
  if (features.size() % header_.shape.tables != 0) {
    return {StatusCode::kInvalidArgument, "a chunk has too few super-features"};
  }
  candidates.assign(features.size() / header_.shape.tables, {});
  lookups_ += candidates.size();
  FindBatch batch(*this, features);
  if (batch.size() <= kFewPages) {
    for (size_t i = 0; i < batch.size(); ++i) {
      PageLookup lookup = batch.Prepare(i);
      FinishLookup(lookup);
      batch.End(i, lookup);
    }
  } else {
    SILTFS_ASSIGN_OR_RETURN(LookupReader reader, readers_.Take());
    RunLookups(batch, reader);
    readers_.Return(std::move(reader));
  }
  for (size_t chunk = 0; chunk < candidates.size(); ++chunk) {
    candidates[chunk] = CandidatesOf(batch.MatchesOf(chunk));
  }
  return batch.TakeStatus();
}

}  // namespace siltfs
