#include "index/skimpy_stash/chain_sweep.h"

#include <algorithm>

#include "store/base/aligned_buffer.h"
#include "store/base/copy_bytes.h"

namespace siltfs {
namespace {

constexpr uint32_t kReadAtOnce = 64;  // pages

// Calls `visit` with the pages of a file, last page first.
Status ReadBackwards(const PageFiles& files, const ChainLog::LogFile& file,
                     const PageFiles::VisitPage& visit) {
  AlignedBuffer buffer(size_t{std::min(file.pages, kReadAtOnce)} * kPageSize);
  std::vector<bool> whole(kReadAtOnce);
  for (uint32_t end = file.pages; end > 0;) {
    const uint32_t count = std::min(end, kReadAtOnce);
    end -= count;
    const auto page_at = [&](uint32_t i) {
      return PageBytes(buffer.data() + size_t{i} * kPageSize, kPageSize);
    };
    SILTFS_RETURN_IF_ERROR(files.Read(PageAddress::Of(file.id, end), count,
                                      [&](uint32_t i, std::optional<ConstPageBytes> page) {
                                        whole[i] = page.has_value();
                                        if (page) CopyBytes(*page, page_at(i));
                                        return Status::Ok();
                                      }));
    for (uint32_t i = count; i-- > 0;) {
      SILTFS_RETURN_IF_ERROR(
          visit(end + i, whole[i] ? std::optional<ConstPageBytes>(page_at(i)) : std::nullopt));
    }
  }
  return Status::Ok();
}

}  // namespace

Result<SweepResult> SweepChains(const PageFiles& files, const ChainLog& log,
                                const SkimpyStashShape& shape, const BucketDirectory& directory,
                                const VisitRecord& visit) {
  SweepResult result;
  std::vector<uint32_t> next(shape.buckets());  // where the chain of each bucket continues
  for (uint32_t bucket = 0; bucket < next.size(); ++bucket) next[bucket] = directory.head(bucket);
  for (size_t i = log.files().size(); i-- > 0;) {
    const ChainLog::LogFile& file = log.files()[i];
    SILTFS_RETURN_IF_ERROR(
        ReadBackwards(files, file, [&](uint32_t in_file, std::optional<ConstPageBytes> page) {
          if (!page || PageKindOf(*page) != SkimpyStashShape::kRecordPage) {
            ++result.damaged_pages;
            return Status::Ok();
          }
          const uint32_t number = file.first + in_file;
          for (size_t at = ChainRecordsIn(shape.layout, *page); at-- > 0;) {
            const ChainRecord record = ReadChainRecord(shape.layout, *page, at);
            uint32_t& expected = next[record.BucketIn(shape)];
            if (expected != number + 1) continue;
            visit(record, number);
            // A pointer that rises is wrong, and stays in `next`.
            expected = record.pointer;
          }
          return Status::Ok();
        }));
  }
  result.broken_chains = static_cast<uint64_t>(
      std::ranges::count_if(next, [](uint32_t pointer) { return pointer != 0; }));
  return result;
}

Result<bool> ReplayChains(const PageFiles& files, const ChainLog& log,
                          const SkimpyStashShape& shape, uint32_t from,
                          BucketDirectory& directory) {
  bool whole = true;
  for (const ChainLog::LogFile& file : log.files()) {
    const uint32_t skipped = std::clamp(from, file.first, file.first + file.pages) - file.first;
    SILTFS_RETURN_IF_ERROR(files.Read(
        PageAddress::Of(file.id, skipped), file.pages - skipped,
        [&](uint32_t i, std::optional<ConstPageBytes> page) {
          whole = whole && page && PageKindOf(*page) == SkimpyStashShape::kRecordPage;
          if (!whole) return Status::Ok();
          const size_t count = ChainRecordsIn(shape.layout, *page);
          for (size_t at = 0; at < count; ++at) {
            directory.Apply(ReadChainRecord(shape.layout, *page, at), file.first + skipped + i);
          }
          return Status::Ok();
        }));
    if (!whole) break;
  }
  return whole;
}

}  // namespace siltfs
