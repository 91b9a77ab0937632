#include "fs/mark/mark.h"

#include <utility>

#include "fs/mark/ordered_references.h"
#include "fs/mark/reference_walk.h"

namespace siltfs {

Status ForEachReference(const KvSnapshot& metadata, NodeStore& nodes, const MarkPace& pace,
                        const std::function<Status(const ChunkName&)>& visit) {
  NodeSet walked(NodeSet::kWholeNames);
  Pacer pacer(pace);
  return WalkReferences(metadata, nodes, walked, pacer, visit);
}

namespace {

class LiveCounter {
 public:
  LiveCounter(Env& env, const KvSnapshot& metadata, NodeStore& nodes, ChunkIndex& index,
              const MarkOptions& options)
      : env_(env),
        metadata_(metadata),
        nodes_(nodes),
        index_(index),
        options_(options),
        pacer_(options.pace, options.progress) {}

  Result<LiveCounts> Count() {
    SILTFS_ASSIGN_OR_RETURN(const auto sorter, SortReferences());
    if (sorter != nullptr) {
      counts_.spilled_bytes = sorter->spilled_bytes();
      SortedReferences references(*sorter, [this](uint64_t order) {
        if (counts_.not_indexed.size() < LiveCounts::kMostNotIndexed)
          counts_.not_indexed.push_back(order);
      });
      SILTFS_RETURN_IF_ERROR(MergeWithIndex(references));
      SILTFS_RETURN_IF_ERROR(references.Finish());
    } else {
      RangedReferences references([this](const auto& add) { return WalkForRange(add); },
                                  options_.memory_bytes);
      SILTFS_RETURN_IF_ERROR(MergeWithIndex(references));
      counts_.passes += references.walks();  // `passes` already counts the walk of SortReferences
    }
    return std::move(counts_);
  }

 private:
  // Null if the disk has no room for sorting.
  Result<std::unique_ptr<ReferenceSorter>> SortReferences() {
    SILTFS_ASSIGN_OR_RETURN(
        auto sorter,
        ReferenceSorter::Create(env_, {.directory = options_.spill_directory,
                                       .memory_bytes = options_.memory_bytes,
                                       .minimum_free_bytes = options_.minimum_free_bytes}));
    bool no_room = false;
    Status sorted = Walk([&](uint64_t order) {
      Status added = sorter->Add(order);
      no_room = added.Is(StatusCode::kNoSpace);  // a kNoSpace of metadata or pace does not count
      return added;
    });
    if (sorted.ok()) {
      sorted = sorter->Sort();
      no_room = sorted.Is(StatusCode::kNoSpace);
    }
    if (no_room) return std::unique_ptr<ReferenceSorter>();
    if (!sorted.ok()) return sorted;
    return sorter;
  }

  Status WalkForRange(const std::function<void(uint64_t order)>& add) {
    return Walk([&](uint64_t order) {
      add(order);
      return Status::Ok();
    });
  }

  Status Walk(const std::function<Status(uint64_t order)>& visit) {
    counts_.references = 0;
    Begin("files", options_.expected_inodes);
    NodeSet walked(NodeSet::kShortNames);
    SILTFS_RETURN_IF_ERROR(
        WalkReferences(metadata_, nodes_, walked, pacer_, [&](const ChunkName& name) {
          ++counts_.references;
          return visit(index_.OrderOf(name));
        }));
    if (!options_.more) return Status::Ok();
    return options_.more([&](const ChunkName& name) -> Status {
      SILTFS_RETURN_IF_ERROR(pacer_.Step());
      return visit(index_.OrderOf(name));
    });
  }

  Status MergeWithIndex(OrderedReferences& references) {
    Begin("chunks", index_.stats().entries);
    return index_.ForEach([&](const OrderedEntry& entry) -> Status {
      SILTFS_RETURN_IF_ERROR(pacer_.Step());
      if (options_.progress != nullptr) options_.progress->Add();
      if (options_.gone && options_.gone(entry.location.segment)) return Status::Ok();
      SILTFS_ASSIGN_OR_RETURN(const bool live, references.Contains(entry.order));
      if (live) {
        ++counts_.live;
        ++counts_.live_chunks[entry.location.segment];
      } else {
        ++counts_.dead_entries;
      }
      return Status::Ok();
    });
  }

  void Begin(std::string_view step, uint64_t total) {
    if (options_.progress != nullptr) options_.progress->Begin(step, total);
  }

  Env& env_;
  const KvSnapshot& metadata_;
  NodeStore& nodes_;
  ChunkIndex& index_;
  const MarkOptions& options_;
  Pacer pacer_;
  LiveCounts counts_;
};

}  // namespace

Result<LiveCounts> CountLive(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                             ChunkIndex& index, const MarkOptions& options) {
  return LiveCounter(env, metadata, nodes, index, options).Count();
}

}  // namespace siltfs
