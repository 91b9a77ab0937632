#include "index/flash/page_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "index/flash/page_header.h"
#include "store/base/aligned_buffer.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr uint32_t kReadAtOnce = 64;      // pages
constexpr uint32_t kWrittenAtOnce = 256;  // pages

uint64_t OffsetOf(uint32_t page) { return uint64_t{page} * kPageSize; }

}  // namespace

StoreFileId PageFiles::FileId(const OneFile& file) const {
  return {.kind = StoreKind::kPages, .partition = static_cast<uint32_t>(file.log), .id = file.id};
}

PageFiles::OneFile* PageFiles::Find(uint64_t id) const {
  ReaderLock lock(mutex_);
  const auto found = files_.find(id);
  return found == files_.end() ? nullptr : found->second.get();
}

// --- Reading ---

PageFiles::FilePin PageFiles::Pin() const {
  MutexLock lock(pin_mutex_);
  return pins_;
}

std::optional<PageFiles::Place> PageFiles::Resolve(PageAddress address) const {
  ReaderLock lock(mutex_);
  const auto found = files_.find(address.file());
  if (found == files_.end() || address.page() >= found->second->pages) return std::nullopt;
  const OneFile& file = *found->second;
  const auto& handle = address.page() < file.reader_pages ? file.reader : file.file;
  return Place{.file = handle.get(), .offset = OffsetOf(address.page()), .seed = file.seed};
}

Status PageFiles::Read(PageAddress first, uint32_t pages, const VisitPage& visit) const {
  if (pages == 0) return Status::Ok();
  const auto place = Resolve(first);
  const uint32_t end = PagesOf(first.file());
  uint32_t there = std::min(pages, end - std::min(end, first.page()));
  const auto last = there == 0 ? std::nullopt : Resolve(first + (there - 1));
  if (!place || !last) there = 0;
  AlignedBuffer buffer(OffsetOf(std::min(there, kReadAtOnce)));
  for (uint32_t at = 0; at < there; at += kReadAtOnce) {
    const uint32_t count = std::min(kReadAtOnce, there - at);
    const MutableByteView bytes = buffer.view().first(OffsetOf(count));
    SILTFS_ASSIGN_OR_RETURN(const size_t got,
                            last->file->Read(place->offset + OffsetOf(at), bytes));
    // Bytes past the file's end read as zeros, which no page check accepts.
    std::fill(bytes.begin() + static_cast<ptrdiff_t>(got), bytes.end(), 0);
    for (uint32_t i = 0; i < count; ++i) {
      const ConstPageBytes page(bytes.data() + OffsetOf(i), kPageSize);
      const bool whole = CheckFlashPage(page, first.page() + at + i, place->seed).has_value();
      SILTFS_RETURN_IF_ERROR(visit(at + i, whole ? std::optional(page) : std::nullopt));
    }
  }
  for (uint32_t i = there; i < pages; ++i) SILTFS_RETURN_IF_ERROR(visit(i, std::nullopt));
  return Status::Ok();
}

Status PageFiles::Verify(
    const std::function<void(const std::string& path, uint64_t offset)>& report) const {
  for (const FileUse& use : Uses()) {
    const FilePin pin = Pin();
    // A file that was removed before this pin may be closed at any moment.
    if (IsRemoved(use.id)) continue;
    const PageAddress first = PageAddress::Of(use.id, 0);
    const auto place = Resolve(first);
    if (!place) continue;
    std::vector<uint32_t> damaged;
    SILTFS_RETURN_IF_ERROR(
        Read(first, PagesOf(use.id), [&](uint32_t i, std::optional<ConstPageBytes> page) {
          if (!page) damaged.push_back(i);
          return Status::Ok();
        }));
    for (const uint32_t i : damaged) {
      // The page may have been cut back meanwhile, and perhaps written again.
      bool whole = i >= PagesOf(use.id);
      SILTFS_RETURN_IF_ERROR(
          Read(first + i, whole ? 0 : 1, [&](uint32_t, std::optional<ConstPageBytes> page) {
            whole = page.has_value();
            return Status::Ok();
          }));
      if (!whole) report(place->file->path(), OffsetOf(i));
    }
  }
  return Status::Ok();
}

// --- Writing ---

// The file that the next pages of a stream are appended to.
Result<PageFiles::OneFile*> PageFiles::TailFor(size_t log, uint64_t stream, uint32_t pages) {
  const auto tail = tails_.find({log, stream});
  if (tail != tails_.end()) {
    OneFile* const file = Find(tail->second);
    if (file->pages == 0 || file->pages + uint64_t{pages} <= logs_[log].pages_per_file) {
      return file;
    }
    EndFile(log, stream);
  }
  if (next_id_ > PageAddress::kMostFile) {
    return Status(StatusCode::kIoError, "has used all file numbers; rebuild the index")
        .At(logs_[log].directory);
  }
  auto made = std::make_unique<OneFile>();
  made->id = next_id_;
  made->log = log;
  made->stream = stream;
  made->seed = PageSeedOf(FileId(*made));
  SILTFS_ASSIGN_OR_RETURN(made->file, CreateStoreFile(env_, logs_[log].directory, FileId(*made)));
  ++next_id_;
  if (logs_[log].sync_names) unsynced_directories_.insert(logs_[log].directory);
  OneFile* const file = made.get();
  tails_[{log, stream}] = file->id;
  changed_.insert(file->id);
  WriterLock lock(mutex_);
  streams_.emplace(log, stream, file->id);
  files_[file->id] = std::move(made);
  return file;
}

Result<PageAddress> PageFiles::Append(size_t log, uint64_t stream, MutableByteView pages) {
  const auto count = static_cast<uint32_t>(pages.size() / kPageSize);
  SILTFS_ASSIGN_OR_RETURN(OneFile* const file, TailFor(log, stream, count));
  const uint32_t first = file->pages;
  for (uint32_t i = 0; i < count; ++i) {
    const PageBytes page(pages.data() + OffsetOf(i), kPageSize);
    SealFlashPage(page, {.number = first + i, .kind = PageKindOf(page), .count = PageCountOf(page)},
                  file->seed);
  }
  file->unsynced = true;
  for (uint32_t at = 0; at < count; at += kWrittenAtOnce) {
    const auto piece =
        ByteView(pages).subspan(OffsetOf(at), OffsetOf(std::min(kWrittenAtOnce, count - at)));
    Status written = file->file->Write(OffsetOf(first + at), piece);
    if (written.ok()) continue;
    // A full disk needs the space of the pages that were written.
    file->file->Truncate(OffsetOf(first)).IgnoreError("the next pages overwrite these");
    return written;
  }
  if (count >= kReadAtOnce) file->file->BeginSync(OffsetOf(first), pages.size());
  bytes_written_.fetch_add(pages.size(), std::memory_order_relaxed);
  counts_[log].all += count;
  counts_[log].live += count;
  changed_.insert(file->id);
  {
    WriterLock lock(mutex_);
    file->pages += count;
    file->live += count;
  }
  if (file->pages >= logs_[log].pages_per_file) EndFile(log, stream);
  return PageAddress::Of(file->id, first);
}

void PageFiles::Release(PageAddress first, uint32_t pages) {
  OneFile* const file = Find(first.file());
  if (file == nullptr) return;
  changed_.insert(file->id);
  const uint32_t released = std::min(file->live, pages);
  counts_[file->log].live -= released;
  WriterLock lock(mutex_);
  file->live -= released;
}

PageFiles::Mark PageFiles::MarkEnds() const {
  Mark mark{.next_id = next_id_, .tails = {}};
  for (const auto& [stream, id] : tails_) mark.tails[stream] = {id, Find(id)->pages};
  return mark;
}

void PageFiles::CutBack(const Mark& mark) {
  {
    WriterLock lock(mutex_);
    for (auto at = files_.lower_bound(mark.next_id); at != files_.end();) {
      const OneFile& file = *at->second;
      counts_[file.log].all -= file.pages;
      tails_.erase({file.log, file.stream});
      changed_.erase(file.id);
      streams_.erase({file.log, file.stream, file.id});
      to_remove_.push_back(FileId(file));
      // Verify may read any file.
      Retire(file.file, 0, /*removed=*/true);
      if (file.reader != nullptr) Retire(file.reader, 0, /*removed=*/true);
      at = files_.erase(at);
    }
  }
  for (const auto& [stream, end] : mark.tails) {
    const auto& [id, pages] = end;
    OneFile* const file = Find(id);
    if (file->pages == pages && !file->ended) continue;
    counts_[file->log].all -= file->pages - pages;
    tails_[stream] = id;
    {
      WriterLock lock(mutex_);
      file->pages = pages;
      file->ended = false;
    }
    file->file->Truncate(OffsetOf(pages)).IgnoreError("the next pages overwrite these");
  }
  RemoveFiles().IgnoreError("the next checkpoint tries again");
  ReapRetired();
}

void PageFiles::EndFile(size_t log, uint64_t stream) {
  const auto tail = tails_.find({log, stream});
  if (tail == tails_.end()) return;
  OneFile* const file = Find(tail->second);
  changed_.insert(file->id);
  tails_.erase(tail);
  WriterLock lock(mutex_);
  file->ended = true;
}

Status PageFiles::Sync() {
  std::vector<OneFile*> unsynced;
  {
    ReaderLock lock(mutex_);
    // A file without a page in use is removed after the checkpoint.
    for (const auto& [id, file] : files_) {
      if (file->unsynced && !file->removed && !(file->ended && file->live == 0))
        unsynced.push_back(file.get());
    }
  }
  for (const OneFile* file : unsynced) file->file->BeginSync(0, OffsetOf(file->pages));
  for (OneFile* file : unsynced) {
    SILTFS_RETURN_IF_ERROR(ForGood(file->file->Sync()));
    file->unsynced = false;
  }
  while (!unsynced_directories_.empty()) {
    SILTFS_RETURN_IF_ERROR(SyncNames(env_, *unsynced_directories_.begin()));
    unsynced_directories_.erase(unsynced_directories_.begin());
  }
  return Status::Ok();
}

// --- The manifest ---

std::vector<std::pair<uint64_t, std::optional<std::string>>> PageFiles::changes() const {
  std::vector<std::pair<uint64_t, std::optional<std::string>>> changes;
  ReaderLock lock(mutex_);
  for (const uint64_t id : changed_) {
    const auto found = files_.find(id);
    const bool needed = found != files_.end() && !found->second->removed &&
                        !(found->second->ended && found->second->live == 0);
    if (!needed) {
      changes.emplace_back(id, std::nullopt);
      continue;
    }
    const OneFile& file = *found->second;
    Encoder out;
    out.U32(static_cast<uint32_t>(file.log)).U64(file.stream).U32(file.pages).U32(file.live);
    out.U8(file.ended ? 1 : 0);
    changes.emplace_back(id, out.Take());
  }
  return changes;
}

Status PageFiles::Enter(uint64_t id, ByteView state) {
  Decoder in(state);
  auto file = std::make_unique<OneFile>();
  file->id = id;
  file->log = in.U32();
  file->stream = in.U64();
  file->pages = in.U32();
  file->live = in.U32();
  const uint8_t ended = in.U8();
  if (!in.Done() || id == 0 || id > PageAddress::kMostFile || file->log >= logs_.size() ||
      file->pages > PageAddress::kMostPages || file->live > file->pages || ended > 1) {
    return {StatusCode::kCorruption, "describes a page file wrongly"};
  }
  file->ended = ended == 1;
  file->seed = PageSeedOf(FileId(*file));
  next_id_ = std::max(next_id_, id + 1);
  counts_[file->log].all += file->pages;
  counts_[file->log].live += file->live;
  if (!file->ended && !tails_.emplace(std::pair(file->log, file->stream), id).second) {
    return {StatusCode::kCorruption, "has two last files of a stream"};
  }
  WriterLock lock(mutex_);
  streams_.emplace(file->log, file->stream, id);
  files_[id] = std::move(file);
  return Status::Ok();
}

Status PageFiles::OpenOne(OneFile& file) {
  const bool direct = file.ended || read_only_;
  const OpenMode mode = file.ended || read_only_ ? OpenMode::kRead : OpenMode::kReadWrite;
  const std::string& directory = logs_[file.log].directory;
  SILTFS_ASSIGN_OR_RETURN(auto opened, OpenStoreFile(env_, directory, FileId(file), mode, direct));
  if (opened == nullptr) {
    return Status(StatusCode::kCorruption, "is missing")
        .At(JoinPath(directory, StoreFileName(FileId(file))));
  }
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, opened->Size());
  if (size < OffsetOf(file.pages)) {
    return Status(StatusCode::kCorruption,
                  fmt::format("has {} bytes, not {}", size, OffsetOf(file.pages)))
        .At(opened->path());
  }
  file.direct = direct;
  file.file = std::move(opened);
  if (direct || file.pages == 0) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(
      file.reader, OpenStoreFile(env_, directory, FileId(file), OpenMode::kRead, /*direct=*/true));
  file.reader_pages = file.reader == nullptr ? 0 : file.pages;
  return Status::Ok();
}

Status PageFiles::Open() {
  WriterLock lock(mutex_);
  for (const auto& [id, file] : files_) SILTFS_RETURN_IF_ERROR(OpenOne(*file));
  return Status::Ok();
}

Status PageFiles::SetUses(const std::map<uint64_t, uint64_t>& pages_of_file) {
  WriterLock lock(mutex_);
  for (const auto& [id, used] : pages_of_file) {
    if (!files_.contains(id)) {
      return {StatusCode::kCorruption, fmt::format("uses the file {}, which is not listed", id)};
    }
  }
  for (const auto& [id, file] : files_) {
    const auto found = pages_of_file.find(id);
    const uint64_t used = found == pages_of_file.end() ? 0 : found->second;
    if (used > file->pages) {
      return Status(StatusCode::kCorruption,
                    fmt::format("has {} pages, but {} are in use", file->pages, used))
          .At(file->file->path());
    }
    if (used == file->live) continue;
    counts_[file->log].live += used - file->live;
    file->live = static_cast<uint32_t>(used);
    changed_.insert(id);
  }
  return Status::Ok();
}

Result<std::vector<StoreFileId>> PageFiles::FilesIn(const std::string& directory) const {
  auto files = ListStoreFiles(env_, directory);
  if (files.status().Is(StatusCode::kNotFound)) return std::vector<StoreFileId>();
  return files;
}

Result<bool> PageFiles::AnyThere() const {
  for (const PageLogSpec& log : logs_) {
    SILTFS_ASSIGN_OR_RETURN(const auto files, FilesIn(log.directory));
    if (!files.empty()) return true;
  }
  return false;
}

Status PageFiles::RemoveLeftovers() {
  std::set<std::string> directories;
  for (const PageLogSpec& log : logs_) directories.insert(log.directory);
  for (const std::string& directory : directories) {
    SILTFS_ASSIGN_OR_RETURN(const auto there, FilesIn(directory));
    for (const StoreFileId& id : there) {
      // Greater numbers are no names that an index gives.
      if (id.id <= PageAddress::kMostFile / 2) next_id_ = std::max(next_id_, id.id + 1);
      const OneFile* const file = id.kind == StoreKind::kPages ? Find(id.id) : nullptr;
      const bool listed =
          file != nullptr && FileId(*file) == id && logs_[file->log].directory == directory;
      if (listed) {
        if (file->ended) continue;
        SILTFS_ASSIGN_OR_RETURN(const uint64_t size, file->file->Size());
        if (size > OffsetOf(file->pages)) {
          SILTFS_RETURN_IF_ERROR(file->file->Truncate(OffsetOf(file->pages)));
        }
        continue;
      }
      SILTFS_RETURN_IF_ERROR(RemoveStoreFile(env_, directory, id));
    }
  }
  return Status::Ok();
}

void PageFiles::Retire(std::shared_ptr<File> file, uint64_t removed_id, bool removed) {
  MutexLock lock(pin_mutex_);
  retired_.push_back(
      {.pins = pins_, .file = std::move(file), .removed_id = removed_id, .removed = removed});
  pins_ = std::make_shared<int>(0);
}

// A reader with an older pin may use any file that was retired later, so the order matters.
bool PageFiles::ReapRetired() {
  bool removed = false;
  while (!retired_.empty() && retired_.front().pins.expired()) {
    removed = removed || retired_.front().removed;
    if (const uint64_t id = retired_.front().removed_id; id != 0) {
      WriterLock lock(mutex_);
      const auto found = files_.find(id);
      streams_.erase({found->second->log, found->second->stream, id});
      files_.erase(found);
    }
    retired_.pop_front();
  }
  return removed;
}

// Reads through the page cache would need memory that nothing limits. So durable pages are read
// without it.
Status PageFiles::ReadDirect(OneFile& file) {
  std::shared_ptr<File> reader = file.reader;
  if (reader == nullptr) {
    SILTFS_ASSIGN_OR_RETURN(reader, OpenStoreFile(env_, logs_[file.log].directory, FileId(file),
                                                  OpenMode::kRead, /*direct=*/true));
    if (reader == nullptr) return Status::Ok();
  }
  std::shared_ptr<File> old;
  {
    WriterLock lock(mutex_);
    file.reader = reader;
    file.reader_pages = file.pages;
    if (file.ended) {
      old = std::exchange(file.file, std::move(reader));
      file.direct = true;
    }
  }
  if (old != nullptr) Retire(std::move(old), 0, /*removed=*/false);
  return Status::Ok();
}

Status PageFiles::Committed() {
  ReapRetired();
  for (const uint64_t id : changed_) {
    OneFile* const file = Find(id);
    if (file == nullptr || file->removed) continue;
    if (!(file->ended && file->live == 0)) {
      if (file->direct) continue;
      ReadDirect(*file).IgnoreError("the file that is open works, too");
      continue;
    }
    to_remove_.push_back(FileId(*file));
    counts_[file->log].all -= file->pages;
    {
      WriterLock lock(mutex_);
      file->removed = true;
    }
    Retire(file->file, id, /*removed=*/true);
  }
  changed_.clear();
  SILTFS_RETURN_IF_ERROR(RemoveFiles());
  ReapRetired();
  return Status::Ok();
}

Status PageFiles::RemoveFiles() {
  while (!to_remove_.empty()) {
    const StoreFileId& file = to_remove_.back();
    const Status removed = RemoveStoreFile(env_, logs_[file.partition].directory, file);
    // Removal need not be durable: the manifest does not list the file.
    if (!removed.ok() && !removed.Is(StatusCode::kNotFound)) return removed;
    to_remove_.pop_back();
  }
  return Status::Ok();
}

// --- State ---

std::vector<uint64_t> PageFiles::FilesOf(size_t log, uint64_t stream) const {
  std::vector<uint64_t> ids;
  ReaderLock lock(mutex_);
  for (auto at = streams_.lower_bound({log, stream, 0}); at != streams_.end(); ++at) {
    const auto& [its_log, its_stream, id] = *at;
    if (its_log != log || its_stream != stream) break;
    if (!files_.at(id)->removed) ids.push_back(id);
  }
  return ids;
}

bool PageFiles::AnyUnneeded() const {
  return std::ranges::any_of(changed_, [&](uint64_t id) {
    const OneFile* const file = Find(id);
    return file != nullptr && !file->removed && file->ended && file->live == 0;
  });
}

std::vector<PageFiles::FileUse> PageFiles::Uses() const {
  std::vector<FileUse> uses;
  ReaderLock lock(mutex_);
  for (const auto& [id, file] : files_) {
    if (file->removed) continue;
    uses.push_back({.id = id,
                    .log = file->log,
                    .pages = file->pages,
                    .live = file->live,
                    .ended = file->ended});
  }
  return uses;
}

bool PageFiles::IsRemoved(uint64_t id) const {
  ReaderLock lock(mutex_);
  const auto found = files_.find(id);
  return found == files_.end() || found->second->removed;
}

uint32_t PageFiles::PagesOf(uint64_t id) const {
  ReaderLock lock(mutex_);
  const auto found = files_.find(id);
  return found == files_.end() ? 0 : found->second->pages;
}

uint64_t PageFiles::flash_bytes() const {
  uint64_t pages = 0;
  for (const PageCounts& counts : counts_) pages += counts.all;
  return pages * kPageSize;
}

uint64_t PageFiles::live_pages() const {
  uint64_t pages = 0;
  for (const PageCounts& counts : counts_) pages += counts.live;
  return pages;
}

}  // namespace siltfs
