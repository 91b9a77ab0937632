// Which page of a sorted file has a key: an alternative to the trie of SILT's section 3.3 that
// takes less memory and less time, but needs keys that are hashes.
//
// The range of the store's hashes is divided into equal *bins*, about as many as there are entries.
// Pages end at bins: the writer begins a new page when the next bin does not fit into the present
// one. So a page is determined by the number of its first bin. These numbers ascend, and are coded
// as Elias and Fano did: the low bits of each number as they are, the high bits in unary. Both take
// some 10 bits a page; a lookup counts the first bins that are not above the key's bin. Ending
// pages at bins of one key leaves half a slot of each page empty.
//
// A bin with more entries than fit a page takes several pages. With hashes that are as good as
// random this does not happen. Thread-safety: immutable, so safe to share between threads.
#pragma once

#include <cstdint>
#include <vector>

#include "index/flash/bit_stream.h"
#include "store/base/bytes.h"
#include "store/base/coding.h"
#include "store/base/result.h"

namespace siltfs {

// The bins of a sorted file. A plain value.
struct HashBins {
  unsigned skip_bits = 0;  // leading bits that all hashes share
  uint64_t count = 1;      // at least 1

  uint64_t Of(uint64_t hash) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>(Wide{hash << skip_bits} * count >> 64);
  }
  friend bool operator==(const HashBins&, const HashBins&) = default;
};

class PageBounds {
 public:
  // Pages first to last; mostly one.
  struct Range {
    uint32_t first = 0;
    uint32_t last = 0;
  };
  // The pages that may hold a key of this hash, whose leading bits must be those of the store.
  Range PagesOf(uint64_t hash) const;

  // Whether PagesOf returns one page for every hash.
  bool EachBinInOnePage() const;

  uint32_t pages() const { return pages_; }
  const HashBins& bins() const { return bins_; }
  size_t memory_bytes() const;

  // Encodes the boundaries without a checksum, as TrieIndex does.
  void Encode(Encoder& out) const;
  // Reads the output of Encode; kCorruption for other bytes. Accepted boundaries are safe to look
  // up in, even crafted ones.
  static Result<PageBounds> Decode(ByteView bytes);

 private:
  friend class PageBoundsBuilder;
  PageBounds() = default;

  // Number of first bins in high_, which has a one for each.
  uint32_t starts() const { return pages_ - 1; }
  uint64_t LowBits(uint32_t start) const;
  bool HighBit(uint64_t position) const { return high_[position >> 3] >> (position & 7) & 1; }
  // Position in high_ of the zero with this number, counted from 0.
  uint64_t ZeroAt(uint64_t number) const;
  uint64_t zeros() const { return ((bins_.count - 1) >> low_width_) + 1; }
  uint64_t high_bits() const { return starts() + zeros(); }
  uint64_t HighWord(uint64_t word) const;
  // Fills zero_samples_; false if high_ has not as many ones and zeros as it should.
  bool IndexZeros();
  template <typename Holds>
  bool EachStart(const Holds& holds) const;
  bool Ascends() const;

  // Constant after construction.
  HashBins bins_;
  uint32_t pages_ = 1;                  // the first page begins with bin 0, which is not coded
  unsigned low_width_ = 0;              // bits
  Bytes low_;                           // with padding for BitReader
  Bytes high_;                          // whole words of 8 bytes
  std::vector<uint32_t> zero_samples_;  // positions of every 64th zero
};

// Builds the boundaries while pages are written. Memory: that of the result.
class PageBoundsBuilder {
 public:
  // `entries_per_page`: about how many a page will have.
  PageBoundsBuilder(const HashBins& bins, size_t entries_per_page);

  // Adds the next page. The first page must begin with bin 0, in effect: its argument is ignored.
  // Bins must not descend.
  void AddPage(uint64_t first_bin);
  uint32_t pages() const { return pages_; }
  // Requires a page. Call once.
  PageBounds Finish();

 private:
  void WriteZeros(uint64_t until);

  PageBounds bounds_;
  uint32_t pages_ = 0;
  uint64_t zeros_ = 0;  // written to high_
  BitWriter low_;
  BitWriter high_;
};

}  // namespace siltfs
