#include "history.h"

#include <algorithm>
#include <set>

#include "store/base/coding.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

void History::NotePut(const IndexEntry& entry, uint64_t sequence, bool certain) {
  operations_[entry.name].push_back({next_number_++, sequence, entry.location, certain});
  last_sequence_ = std::max(last_sequence_, sequence);
  if (!certain) first_failed_sequence_ = std::min(first_failed_sequence_, sequence);
}

void History::NoteDelete(const ChunkName& name, bool certain) {
  operations_[name].push_back({next_number_++, 0, std::nullopt, certain});
}

void History::NoteFlushed() { flushed_number_ = next_number_ - 1; }

bool History::MayAnswerNow(const ChunkName& name, const Answer& answer) const {
  auto found = operations_.find(name);
  if (found == operations_.end()) return !answer;
  const auto& operations = found->second;
  for (size_t i = operations.size(); i-- > 0;) {
    if (operations[i].state == answer) return true;
    if (operations[i].certain) return false;
  }
  return !answer;
}

bool History::MayAnswerAfterCrash(const ChunkName& name, const Answer& answer, uint64_t durable,
                                  bool flushed_is_there) const {
  auto found = operations_.find(name);
  if (found == operations_.end()) return !answer;
  const auto& operations = found->second;
  for (size_t i = operations.size(); i-- > 0;) {
    const Operation& operation = operations[i];
    if (operation.state == answer) return true;
    const bool put_durably = operation.sequence != 0 && operation.sequence <= durable;
    const bool flushed = flushed_is_there && operation.number <= flushed_number_;
    if (operation.certain && (put_durably || flushed)) return false;
  }
  return !answer;
}

History History::WithKnownAnswers(const std::vector<ChunkName>& names,
                                  const std::vector<Answer>& answers) const {
  History known;
  for (size_t i = 0; i < names.size(); ++i) {
    auto found = operations_.find(names[i]);
    if (found == operations_.end()) continue;
    uint64_t sequence = 0;
    for (const Operation& operation : found->second) {
      if (answers[i] && operation.state == answers[i]) sequence = operation.sequence;
    }
    if (answers[i]) {
      known.NotePut({names[i], *answers[i]}, sequence, true);
    } else {
      known.NoteDelete(names[i], true);
    }
  }
  known.last_sequence_ = last_sequence_;
  return known;
}

std::vector<History::Put> History::PutsAbove(uint64_t sequence) const {
  std::vector<std::pair<uint64_t, Put>> numbered;
  for (const auto& [name, operations] : operations_) {
    for (const Operation& operation : operations) {
      if (operation.sequence <= sequence) continue;
      numbered.push_back({operation.number, {{name, *operation.state}, operation.sequence}});
    }
  }
  std::sort(numbered.begin(), numbered.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Put> puts;
  for (auto& [number, put] : numbered) puts.push_back(put);
  return puts;
}

std::vector<ChunkName> History::Names() const {
  std::vector<ChunkName> names;
  for (const auto& [name, operations] : operations_) names.push_back(name);
  return names;
}

ChunkName NameOf(uint64_t number) {
  Random random(number);
  ChunkName name;
  random.Fill(name.bytes);
  return name;
}

Location RandomLocation(Random& random) {
  return {.segment = static_cast<SegmentId>(1 + random.Below(UINT32_MAX - 1)),
          .ordinal = static_cast<uint32_t>(random.Below(Location::kMaxOrdinal + 1)),
          .block_offset = static_cast<uint32_t>(random.Below(Location::kMaxBlockOffset + 1))};
}

WorkloadResult RunWorkload(ChunkIndex& index, History& history, const WorkloadOptions& options) {
  Random random(options.seed);
  WorkloadResult result;
  uint64_t sequence = std::max(history.last_sequence(), index.durable_sequence()) + 1;
  for (int step = 0; step < options.steps; ++step) {
    const uint64_t kind = random.Below(20);
    if (kind < 13) {
      std::vector<IndexEntry> entries(1 + random.Below(8));
      for (IndexEntry& entry : entries) {
        entry = {NameOf(random.Below(options.names)), RandomLocation(random)};
      }
      const Status put = index.Put(entries, sequence);
      for (const IndexEntry& entry : entries) history.NotePut(entry, sequence, put.ok());
      result.failures += put.ok() ? 0 : 1;
      if (random.OneIn(2)) sequence += 1 + random.Below(2);
    } else if (kind < 16) {
      const ChunkName name = NameOf(random.Below(options.names));
      const Status deleted = index.Delete(name);
      history.NoteDelete(name, deleted.ok());
      result.failures += deleted.ok() ? 0 : 1;
    } else if (kind < 17 && options.flush) {
      const Status flushed = index.Flush();
      if (flushed.ok()) history.NoteFlushed();
      result.failures += flushed.ok() ? 0 : 1;
    } else {
      const ChunkName name = NameOf(random.Below(options.names + 5));
      const Result<Answer> got = index.Get(name);
      if (got.ok()) {
        REQUIRE(history.MayAnswerNow(name, *got));
      } else {
        ++result.failures;
      }
    }
    const uint64_t durable = index.durable_sequence();
    REQUIRE(durable >= result.durable);
    result.durable = durable;
  }
  return result;
}

namespace {

std::vector<Answer> GetAll(ChunkIndex& index, std::span<const ChunkName> names) {
  std::vector<Answer> answers(names.size());
  REQUIRE_OK(index.Get(names, answers));
  return answers;
}

std::vector<ChunkName> NamesAndStrangers(const History& history) {
  std::vector<ChunkName> names = history.Names();
  for (uint64_t i = 0; i < 20; ++i) names.push_back(NameOf(1'000'000 + i));
  return names;
}

// Returns all entries by their place in the order.
std::map<uint64_t, Location> Listed(ChunkIndex& index) {
  std::map<uint64_t, Location> shown;
  REQUIRE_OK(index.ForEach([&](const OrderedEntry& entry) -> Status {
    if (!shown.empty() && entry.order < shown.rbegin()->first) {
      return {StatusCode::kInvalidArgument, "out of order"};
    }
    const bool first_time = shown.emplace(entry.order, entry.location).second;
    return first_time ? Status::Ok() : Status(StatusCode::kAlreadyExists, "shown twice");
  }));
  return shown;
}

}  // namespace

void CheckNow(ChunkIndex& index, const History& history) {
  const auto names = NamesAndStrangers(history);
  const auto answers = GetAll(index, names);
  for (size_t i = 0; i < names.size(); ++i) {
    INFO("name " << names[i].ToHex());
    REQUIRE(history.MayAnswerNow(names[i], answers[i]));
  }
}

void CheckAfterCrash(ChunkIndex& index, const History& history, bool flushed_is_there) {
  REQUIRE(index.durable_sequence() < history.first_failed_sequence());
  const auto names = NamesAndStrangers(history);
  const auto answers = GetAll(index, names);
  for (size_t i = 0; i < names.size(); ++i) {
    INFO("name " << names[i].ToHex() << ", durable " << index.durable_sequence());
    REQUIRE(history.MayAnswerAfterCrash(names[i], answers[i], index.durable_sequence(),
                                        flushed_is_there));
  }
}

void CheckLifeGoesOn(std::unique_ptr<ChunkIndex> index, const History& history,
                     const std::function<std::unique_ptr<ChunkIndex>()>& open) {
  const auto names = history.Names();
  History known = history.WithKnownAnswers(names, GetAll(*index, names));
  for (const History::Put& put : history.PutsAbove(index->durable_sequence())) {
    REQUIRE_OK(index->Put({&put.entry, 1}, put.sequence));
    known.NotePut(put.entry, put.sequence, true);
  }
  CheckNow(*index, known);
  const auto run = RunWorkload(*index, known, {.seed = 99, .steps = 40});
  REQUIRE(run.failures == 0);
  REQUIRE_OK(index->Close());
  index = open();
  REQUIRE(index->durable_sequence() == known.last_sequence());
  REQUIRE(index->stats().damaged_pages == 0);
  CheckNow(*index, known);
  CheckForEach(*index, known);
}

void CheckForEach(ChunkIndex& index, const History& history) {
  const std::map<uint64_t, Location> shown = Listed(index);
  const auto names = NamesAndStrangers(history);
  const auto answers = GetAll(index, names);
  size_t there = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!answers[i]) continue;
    ++there;
    REQUIRE(shown.count(index.OrderOf(names[i])) == 1);
    REQUIRE(shown.at(index.OrderOf(names[i])) == *answers[i]);
  }
  REQUIRE(shown.size() == there);
}

}  // namespace siltfs::testing
