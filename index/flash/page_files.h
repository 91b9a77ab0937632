// The files of an index as logs of pages. Pages are appended and never changed. A log may have
// several streams, which do not share files. When no page of a file is in use any more, the file is
// removed. So a structure is changed by appending its new version, and the old version stays
// readable until a checkpoint has made the new one durable.
//
// A checkpoint (flash_index.h) is: Sync; write changes() to the manifest; Committed. After a crash
// the files are as the last checkpoint described them: Open cuts off what was appended later.
//
// Thread-safety: Pin, Resolve, Read and the counters may be called from any thread. The other calls
// change the files, and must be made one at a time. Ownership: `env` must outlive the object. A
// file that Resolve returns stays open as long as a pin lives that was taken before. Units: pages
// of 4 KiB. Errors: kIoError and kNoSpace from the device. A failed Append leaves no page in use,
// and may be repeated.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "index/flash/flash_page.h"
#include "index/flash/page_address.h"
#include "index/flash/store_files.h"
#include "store/env/env.h"

namespace siltfs {

// One log of an index.
struct PageLogSpec {
  std::string directory;
  uint32_t pages_per_file = 1;  // a file ends when it has this many pages
  // The directory is not that of the manifest, which the manifest syncs. It may be missing as long
  // as nothing is appended to the log.
  bool sync_names = false;
};

class PageFiles {
 public:
  // Logs are numbered by their position in `logs`.
  PageFiles(Env& env, std::vector<PageLogSpec> logs, bool read_only)
      : env_(env), logs_(std::move(logs)), read_only_(read_only), counts_(logs_.size()) {}
  PageFiles(const PageFiles&) = delete;
  PageFiles& operator=(const PageFiles&) = delete;

  // --- Reading ---

  using FilePin = std::shared_ptr<const void>;
  FilePin Pin() const;

  struct Place {
    const File* file = nullptr;
    uint64_t offset = 0;  // bytes
    uint64_t seed = 0;    // of the page's checksum
  };
  // Nothing if there is no such page.
  std::optional<Place> Resolve(PageAddress address) const;

  // Calls visit(i, page) for the pages first, first + 1, ..., in order; `page` is nothing if the
  // page is damaged. Reads many pages at once. The caller must have a pin.
  using VisitPage = std::function<Status(uint32_t i, std::optional<ConstPageBytes> page)>;
  Status Read(PageAddress first, uint32_t pages, const VisitPage& visit) const;

  // --- Writing ---

  // Appends pages, whose kinds and counts must be set; seals them. All pages are in one file, one
  // after the other. 1 <= pages <= kMostPages. Returns the address of the first.
  Result<PageAddress> Append(size_t log, uint64_t stream, MutableByteView pages);
  // The pages are no longer in use.
  void Release(PageAddress first, uint32_t pages);
  // The ends of all streams at one moment, before pages are appended that may turn out useless.
  struct Mark {
    uint64_t next_id = 1;
    std::map<std::pair<size_t, uint64_t>, std::pair<uint64_t, uint32_t>> tails;  // file and pages
  };
  Mark MarkEnds() const;
  // Removes all pages that were appended since the mark, and gives their space back to the device.
  // All of them must have been released, no lookup may know their addresses, and there was no
  // checkpoint since the mark. Verify may read them meanwhile.
  void CutBack(const Mark& mark);
  // The next page of the stream begins a new file.
  void EndFile(size_t log, uint64_t stream);
  Status Sync();

  // --- The manifest ---

  // The files whose states have changed since the last Committed, in order of their ids, with their
  // states; without a state if the file is no longer needed.
  std::vector<std::pair<uint64_t, std::optional<std::string>>> changes() const;
  // The manifest with these changes is durable. Removes files that are no longer needed. Their
  // space is free when no pin from before is left.
  Status Committed();
  // Closes removed files that no reader uses any more. Returns whether there were any.
  bool ReapRetired();
  // Enters a file of the manifest, before Open. kCorruption if the state is invalid.
  Status Enter(uint64_t id, ByteView state);
  // Opens the files that were entered. kCorruption if one is missing or too short. Writes nothing.
  Status Open();
  // Tells how many pages of each file are in use, after Open. The numbers in the manifest are wrong
  // if an earlier process lost track of pages after an error. kCorruption if a file has fewer
  // pages, or if it is missing in the manifest.
  Status SetUses(const std::map<uint64_t, uint64_t>& pages_of_file);
  // Cuts off pages that are not in the manifest, and removes files that are not.
  Status RemoveLeftovers();
  // Whether a directory has page files. For an index without a manifest.
  Result<bool> AnyThere() const;

  // --- State ---

  // The files of a stream, oldest first.
  std::vector<uint64_t> FilesOf(size_t log, uint64_t stream) const;
  struct FileUse {
    uint64_t id = 0;
    size_t log = 0;
    uint32_t pages = 0;
    uint32_t live = 0;
    bool ended = false;
  };
  std::vector<FileUse> Uses() const;  // by id
  uint32_t PagesOf(uint64_t id) const;
  // Whether the next checkpoint removes a file.
  bool AnyUnneeded() const;
  const PageLogSpec& log(size_t number) const { return logs_[number]; }
  Env& env() const { return env_; }
  uint64_t flash_bytes() const;
  // Pages in use, and others in files that were not removed yet.
  uint64_t live_pages(size_t log) const { return counts_[log].live; }
  uint64_t dead_pages(size_t log) const { return counts_[log].all - counts_[log].live; }
  uint64_t live_pages() const;
  uint64_t bytes_written() const { return bytes_written_.load(std::memory_order_relaxed); }
  // Calls `visit` with each file's path and page numbers that are damaged.
  Status Verify(const std::function<void(const std::string& path, uint64_t offset)>& report) const;

 private:
  struct OneFile {
    uint64_t id = 0;
    size_t log = 0;
    uint64_t stream = 0;
    uint32_t pages = 0;
    uint32_t live = 0;
    bool ended = false;     // no page is appended any more
    bool unsynced = false;  // pages were written since the last sync
    bool direct = false;    // opened without the page cache
    bool removed = false;   // from the directory; readers with older pins may still use it
    uint64_t seed = 0;
    std::shared_ptr<File> file;
    // Reads without the page cache what is durable, of a file that is appended to.
    std::shared_ptr<File> reader;
    uint32_t reader_pages = 0;
  };
  struct Retired {
    std::weak_ptr<const void> pins;  // expired when no reader can use the file
    std::shared_ptr<File> file;
    uint64_t removed_id = 0;  // 0: the file is not listed, or only its handle was replaced
    bool removed = false;     // the file's space becomes free
  };

  StoreFileId FileId(const OneFile& file) const;
  // None if there is no such directory.
  Result<std::vector<StoreFileId>> FilesIn(const std::string& directory) const;
  OneFile* Find(uint64_t id) const;
  bool IsRemoved(uint64_t id) const;
  Result<OneFile*> TailFor(size_t log, uint64_t stream, uint32_t pages);
  void Retire(std::shared_ptr<File> file, uint64_t removed_id, bool removed);
  Status RemoveFiles();
  Status OpenOne(OneFile& file);
  Status ReadDirect(OneFile& file);

  Env& env_;
  const std::vector<PageLogSpec> logs_;
  const bool read_only_;
  struct PageCounts {
    std::atomic<uint64_t> all{0};
    std::atomic<uint64_t> live{0};
  };
  std::vector<PageCounts> counts_;  // by log

  mutable SharedMutex mutex_;
  std::map<uint64_t, std::unique_ptr<OneFile>> files_ SILTFS_GUARDED_BY(mutex_);
  // Log, stream and id of all files.
  std::set<std::tuple<size_t, uint64_t, uint64_t>> streams_ SILTFS_GUARDED_BY(mutex_);
  mutable Mutex pin_mutex_;
  std::shared_ptr<const void> pins_ SILTFS_GUARDED_BY(pin_mutex_) = std::make_shared<int>(0);

  // Used only by the calls that change the files.
  std::set<std::string> unsynced_directories_;  // with new files, of logs with sync_names
  std::map<std::pair<size_t, uint64_t>, uint64_t> tails_;  // by log and stream
  std::set<uint64_t> changed_;
  std::deque<Retired> retired_;
  std::vector<StoreFileId> to_remove_;
  uint64_t next_id_ = 1;

  std::atomic<uint64_t> bytes_written_{0};
};

}  // namespace siltfs
