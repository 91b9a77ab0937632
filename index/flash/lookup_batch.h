// Runs lookups that read pages of flash: one lookup with sequential reads, or a batch of lookups
// that share a read queue. The lookups of a batch do not wait for each other, so the read queue
// stays full until few lookups are left.
//
// `Lookup` is the type of an engine's lookups. It can be moved, and has these functions:
//
//     std::optional<PageRead> NextRead();        // nothing if the lookup has ended
//     void Take(const Status&, ConstPageBytes);  // passes in the page of the last NextRead
//
// Thread-safety: a batch, its lookups and its reader belong to one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "index/flash/slot.h"
#include "store/base/aligned_buffer.h"
#include "store/env/env.h"

namespace siltfs {

// A page that a lookup needs.
struct PageRead {
  const File* file;
  uint64_t offset;
};

// Finishes the lookup with sequential reads.
template <typename Lookup>
void FinishLookup(Lookup& lookup) {
  alignas(kPageSize) std::array<uint8_t, kPageSize> page;
  while (const auto read = lookup.NextRead()) {
    auto got = read->file->Read(read->offset, page);
    // Bytes past the file's end read as zeros, which no name has.
    if (got.ok()) std::fill(page.begin() + static_cast<ptrdiff_t>(*got), page.end(), 0);
    lookup.Take(got.ok() ? Status::Ok() : std::move(got).status(), page);
  }
}

// The read queue of a batch of lookups, with pages for twice the queue's depth. One half of the
// pages is being read while lookups examine the other half.
struct LookupReader {
  std::unique_ptr<ReadQueue> queue;
  AlignedBuffer pages;
};

// A batch makes its lookups one after the other. So a batch of any size keeps only as many lookups
// in memory as the reader has pages, and a few more.
template <typename Lookup>
class LookupBatch {
 public:
  virtual ~LookupBatch() = default;
  virtual size_t size() const = 0;
  // Makes the i-th lookup; called in order. Prefetches the memory that the lookup touches first.
  virtual Lookup Prepare(size_t i) = 0;
  // Begins the lookup, soon after Prepare.
  virtual void Begin(Lookup& lookup) = 0;
  // Called when the i-th lookup has ended, in any order.
  virtual void End(size_t i, const Lookup& lookup) = 0;
};

// One run of a batch. For RunLookups only.
template <typename Lookup>
class LookupBatchRun {
 public:
  LookupBatchRun(LookupBatch<Lookup>& batch, LookupReader& reader)
      : batch_(batch),
        reader_(reader),
        size_(batch.size()),
        depth_(std::min(reader.pages.size() / kPageSize, size_)) {}

  void Run() {
    runs_.reserve(depth_ + kBegunTogether);
    requests_.reserve(depth_);
    while (requests_.size() < depth_) {
      ReadRequest request;
      request.out = reader_.pages.view().subspan(requests_.size() * kPageSize, kPageSize);
      Running* run = nullptr;
      if (!Aim(request, run)) break;
      requests_.push_back(std::move(request));
      reading_.push_back(run);
    }
    reader_.queue->ReadAll(requests_, [this](ReadRequest& request) {
      Running*& run = reading_[static_cast<size_t>(&request - requests_.data())];
      const MutableByteView out = request.out;
      // Bytes past the file's end read as zeros, which no name has.
      std::fill(out.begin() + static_cast<ptrdiff_t>(request.bytes_read), out.end(), 0);
      run->lookup->Take(request.status, ConstPageBytes(out.data(), kPageSize));
      return Aim(request, run);
    });
  }

 private:
  // Number of lookups that are begun together, so that their memory accesses overlap.
  static constexpr size_t kBegunTogether = 8;

  struct Running {
    std::optional<Lookup> lookup;
    size_t number = 0;
  };

  // Points the request to the next page of its lookup. If that lookup has ended, points it to the
  // first page of the next lookup. Returns false if there are no more lookups.
  bool Aim(ReadRequest& request, Running*& run) {
    for (;;) {
      if (run != nullptr) {
        if (const auto page = run->lookup->NextRead()) {
          request.file = page->file;
          request.offset = page->offset;
          return true;
        }
        batch_.End(run->number, *run->lookup);
        free_.push_back(run);
      }
      run = TakeBegun();
      if (run == nullptr) return false;
    }
  }

  // Returns a begun lookup; null if there are no more.
  Running* TakeBegun() {
    if (begun_.empty()) BeginSome();
    if (begun_.empty()) return nullptr;
    Running* const run = begun_.back();
    begun_.pop_back();
    return run;
  }

  void BeginSome() {
    for (; prepared_ < size_ && begun_.size() < kBegunTogether; ++prepared_) {
      Running* const run = TakeFree();
      run->number = prepared_;
      run->lookup.emplace(batch_.Prepare(prepared_));
      begun_.push_back(run);
    }
    for (Running* run : begun_) batch_.Begin(*run->lookup);
  }

  Running* TakeFree() {
    if (free_.empty()) return &runs_.emplace_back();  // within the reserved capacity
    Running* const run = free_.back();
    free_.pop_back();
    return run;
  }

  LookupBatch<Lookup>& batch_;
  LookupReader& reader_;
  const size_t size_;
  const size_t depth_;
  size_t prepared_ = 0;
  std::vector<Running> runs_;
  std::vector<Running*> free_;
  std::vector<Running*> begun_;  // lookups that wait for a request
  std::vector<ReadRequest> requests_;
  std::vector<Running*> reading_;  // the lookup that each request serves
};

// Runs all lookups. The reads go into the reader's pages.
template <typename Lookup>
void RunLookups(LookupBatch<Lookup>& batch, LookupReader& reader) {
  LookupBatchRun<Lookup>(batch, reader).Run();
}

}  // namespace siltfs
