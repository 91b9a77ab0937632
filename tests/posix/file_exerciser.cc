#include "tests/posix/file_exerciser.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace siltfs::testing {
namespace {

constexpr size_t kOperationsToTell = 40;

std::string Text(const char* operation, uint64_t offset, uint64_t length) {
  return std::string(operation) + " [" + std::to_string(offset) + ", " +
         std::to_string(offset + length) + ")";
}

// While this object exists, the pages that hold a range of the file are mapped.
class MappedPages {
 public:
  MappedPages(int fd, uint64_t offset, uint64_t length, int protection)
      : skip_(offset % 4096),
        size_(skip_ + length),
        pages_(
            mmap(nullptr, size_, protection, MAP_SHARED, fd, static_cast<off_t>(offset - skip_))) {}
  ~MappedPages() {
    if (ok()) munmap(pages_, size_);
  }
  MappedPages(const MappedPages&) = delete;
  MappedPages& operator=(const MappedPages&) = delete;

  bool ok() const { return pages_ != MAP_FAILED; }
  MutableByteView range() const { return {static_cast<uint8_t*>(pages_) + skip_, size_ - skip_}; }
  int Sync() const { return msync(pages_, size_, MS_SYNC); }

 private:
  const uint64_t skip_;
  const uint64_t size_;
  void* const pages_;
};

}  // namespace

FileExerciser::FileExerciser(FileExerciserOptions options)
    : options_(std::move(options)), random_(options_.seed) {
  fd_ = open(options_.path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  Expect(fd_ >= 0, "open");
}

FileExerciser::~FileExerciser() {
  if (fd_ >= 0) close(fd_);
}

void FileExerciser::Run() {
  for (step_ = 1; step_ <= options_.operations; ++step_) Step();
  CompareAll();
  Sync();
  DropPages();
  CompareAll();
  Reopen();
  SeekEverything();
  CompareAll();
}

void FileExerciser::Step() {
  struct Choice {
    unsigned weight;
    void (FileExerciser::*act)();
  };
  static constexpr Choice kChoices[] = {
      {20, &FileExerciser::Read},      {25, &FileExerciser::Write},
      {8, &FileExerciser::MappedRead}, {10, &FileExerciser::MappedWrite},
      {8, &FileExerciser::Truncate},   {5, &FileExerciser::PunchHole},
      {5, &FileExerciser::ZeroRange},  {4, &FileExerciser::Allocate},
      {6, &FileExerciser::CopyRange},  {3, &FileExerciser::Reopen},
      {2, &FileExerciser::Sync},       {1, &FileExerciser::SeekEverything},
      {3, &FileExerciser::DropPages},
  };
  unsigned sum = 0;
  for (const Choice& choice : kChoices) sum += choice.weight;
  auto pick = static_cast<unsigned>(random_.Below(sum));
  for (const Choice& choice : kChoices) {
    if (pick < choice.weight) return (this->*choice.act)();
    pick -= choice.weight;
  }
}

void FileExerciser::CompareAll() {
  Note("compare all");
  struct stat stat = {};
  Expect(fstat(fd_, &stat) == 0, "fstat");
  if (static_cast<uint64_t>(stat.st_size) != size()) {
    Fail("the size is " + std::to_string(stat.st_size) + " instead of " + std::to_string(size()));
  }
  Bytes found(size() + 1);
  const ssize_t count = pread(fd_, found.data(), found.size(), 0);
  Expect(count == static_cast<ssize_t>(size()), "pread of everything");
  Compare(0, ByteView(found).first(size()));
}

void FileExerciser::Read() {
  const Range range = AnyRange();
  Note(Text("read", range.offset, range.length));
  Bytes found(range.length);
  const ssize_t count = pread(fd_, found.data(), found.size(), static_cast<off_t>(range.offset));
  const uint64_t expected =
      range.offset >= size() ? 0 : std::min(range.length, size() - range.offset);
  Expect(count == static_cast<ssize_t>(expected), "pread gave " + std::to_string(count));
  Compare(range.offset, ByteView(found).first(expected));
}

void FileExerciser::Write() {
  const Range range = AnyRange();
  Note(Text("write", range.offset, range.length));
  const Bytes data = Content(range.length);
  const ssize_t count = pwrite(fd_, data.data(), data.size(), static_cast<off_t>(range.offset));
  Expect(count == static_cast<ssize_t>(data.size()), "pwrite gave " + std::to_string(count));
  Put(range.offset, data);
}

void FileExerciser::MappedRead() {
  const Range range = RangeInside();
  if (range.length == 0) return;
  Note(Text("mapped read", range.offset, range.length));
  const MappedPages pages(fd_, range.offset, range.length, PROT_READ);
  Expect(pages.ok(), "mmap");
  Compare(range.offset, pages.range());
}

void FileExerciser::MappedWrite() {
  const Range range = AnyRange();
  if (range.length == 0) return;
  Note(Text("mapped write", range.offset, range.length));
  if (range.end() > size()) {
    Expect(ftruncate(fd_, static_cast<off_t>(range.end())) == 0, "ftruncate");
    Grow(range.end());
  }
  const Bytes data = Content(range.length);
  const MappedPages pages(fd_, range.offset, range.length, PROT_READ | PROT_WRITE);
  Expect(pages.ok(), "mmap");
  std::copy(data.begin(), data.end(), pages.range().begin());
  Put(range.offset, data);
  if (random_.OneIn(4)) Expect(pages.Sync() == 0, "msync");
}

void FileExerciser::Truncate() {
  const uint64_t wanted = Aligned(random_.Below(options_.max_size + 1));
  Note("truncate to " + std::to_string(wanted) + " from " + std::to_string(size()));
  Expect(ftruncate(fd_, static_cast<off_t>(wanted)) == 0, "ftruncate");
  model_.resize(wanted);
}

void FileExerciser::PunchHole() {
  const Range range = AnyRange();
  if (range.length == 0) return;
  Note(Text("punch hole", range.offset, range.length));
  Expect(fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                   static_cast<off_t>(range.offset), static_cast<off_t>(range.length)) == 0,
         "fallocate");
  const uint64_t end = std::min(range.end(), size());
  if (range.offset < end) Put(range.offset, Bytes(end - range.offset, 0));
}

void FileExerciser::ZeroRange() {
  const Range range = AnyRange();
  if (range.length == 0) return;
  const bool keep_size = random_.OneIn(2);
  Note(Text(keep_size ? "zero, keep size," : "zero", range.offset, range.length));
  Expect(fallocate(fd_, FALLOC_FL_ZERO_RANGE | (keep_size ? FALLOC_FL_KEEP_SIZE : 0),
                   static_cast<off_t>(range.offset), static_cast<off_t>(range.length)) == 0,
         "fallocate");
  const uint64_t end = keep_size ? std::min(range.end(), size()) : range.end();
  if (range.offset < end) Put(range.offset, Bytes(end - range.offset, 0));
}

void FileExerciser::Allocate() {
  const Range range = AnyRange();
  if (range.length == 0) return;
  const bool keep_size = random_.OneIn(2);
  Note(Text(keep_size ? "allocate, keep size," : "allocate", range.offset, range.length));
  Expect(fallocate(fd_, keep_size ? FALLOC_FL_KEEP_SIZE : 0, static_cast<off_t>(range.offset),
                   static_cast<off_t>(range.length)) == 0,
         "fallocate");
  if (!keep_size) Grow(range.end());
}

void FileExerciser::CopyRange() {
  const Range from = RangeInside();
  if (from.length == 0) return;
  const uint64_t to = Aligned(random_.Below(options_.max_size - from.length + 1));
  if (to < from.end() && from.offset < to + from.length) return;
  Note(Text("copy", from.offset, from.length) + " to " + std::to_string(to));
  auto source = static_cast<off_t>(from.offset);
  auto target = static_cast<off_t>(to);
  for (uint64_t left = from.length; left > 0;) {
    const ssize_t count = copy_file_range(fd_, &source, fd_, &target, left, 0);
    Expect(count > 0, "copy_file_range gave " + std::to_string(count));
    left -= static_cast<uint64_t>(count);
  }
  const auto begin = model_.begin() + static_cast<ptrdiff_t>(from.offset);
  Put(to, Bytes(begin, begin + static_cast<ptrdiff_t>(from.length)));
}

void FileExerciser::Reopen() {
  Note("close and open");
  Expect(close(fd_) == 0, "close");
  fd_ = open(options_.path.c_str(), O_RDWR);
  Expect(fd_ >= 0, "open");
}

void FileExerciser::Sync() {
  const bool data_only = random_.OneIn(2);
  Note(data_only ? "fdatasync" : "fsync");
  Expect((data_only ? fdatasync(fd_) : fsync(fd_)) == 0, "fsync");
}

// Checks that data and holes alternate from the beginning to the end, and that holes are zero.
void FileExerciser::SeekEverything() {
  Note("seek everything");
  uint64_t at = 0;
  while (at < size()) {
    const off_t data = lseek(fd_, static_cast<off_t>(at), SEEK_DATA);
    Expect(data >= 0 || errno == ENXIO, "SEEK_DATA from " + std::to_string(at));
    const uint64_t hole_end = data < 0 ? size() : static_cast<uint64_t>(data);
    if (hole_end < at || hole_end > size()) {
      Fail("SEEK_DATA from " + std::to_string(at) + " found " + std::to_string(hole_end));
    }
    const auto begin = model_.begin();
    const auto lost =
        std::find_if(begin + static_cast<ptrdiff_t>(at), begin + static_cast<ptrdiff_t>(hole_end),
                     [](uint8_t byte) { return byte != 0; });
    if (lost - begin < static_cast<ptrdiff_t>(hole_end)) {
      Fail("there is data at " + std::to_string(lost - begin) + ", called a hole from " +
           std::to_string(at) + " to " + std::to_string(hole_end));
    }
    if (hole_end == size()) break;
    const off_t hole = lseek(fd_, static_cast<off_t>(hole_end), SEEK_HOLE);
    Expect(hole > data,
           "SEEK_HOLE from " + std::to_string(hole_end) + " found " + std::to_string(hole));
    at = static_cast<uint64_t>(hole);
  }
  if (at > size()) Fail("SEEK_HOLE found " + std::to_string(at) + ", behind the end");
  errno = 0;
  const off_t behind = lseek(fd_, static_cast<off_t>(size()), SEEK_HOLE);
  Expect(behind < 0 && errno == ENXIO, "SEEK_HOLE from the end");
}

void FileExerciser::DropPages() {
  Note("drop pages");
  Expect(fdatasync(fd_) == 0, "fdatasync");  // only clean pages are dropped
  Expect(posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED) == 0, "posix_fadvise");
}

FileExerciser::Range FileExerciser::AnyRange() {
  // Most ranges are within or near the file, some are anywhere. Most lengths are short.
  const uint64_t reach =
      random_.OneIn(4) ? options_.max_size : std::min(options_.max_size, size() + 65'536);
  const uint64_t offset = Aligned(random_.Below(reach));
  const uint64_t longest = options_.max_size - offset;
  const uint64_t bound = random_.OneIn(3) ? longest : std::min<uint64_t>(longest, 10'000);
  const uint64_t length = Aligned(random_.Below(bound) + 1);
  return {offset, std::max(length, std::min(options_.alignment, longest))};
}

FileExerciser::Range FileExerciser::RangeInside() {
  if (size() == 0) return {0, 0};
  const uint64_t offset = Aligned(random_.Below(size()));
  const uint64_t length = Aligned(random_.Below(size() - offset) + 1);
  return {offset, length};
}

// Returns random bytes, compressible text, zeros, or bytes that are already in the file.
Bytes FileExerciser::Content(uint64_t length) {
  Bytes data(length);
  switch (random_.Below(6)) {
    case 0:
      break;
    case 1:
      std::fill(data.begin(), data.end(), static_cast<uint8_t>(random_.Next()));
      break;
    case 2: {
      if (length > size()) break;
      const auto from = static_cast<ptrdiff_t>(random_.Below(size() - length + 1));
      std::copy_n(model_.begin() + from, length, data.begin());
      break;
    }
    default:
      random_.Fill(data);
  }
  return data;
}

void FileExerciser::Put(uint64_t offset, ByteView data) {
  Grow(offset + data.size());
  std::copy(data.begin(), data.end(), model_.begin() + static_cast<ptrdiff_t>(offset));
}

void FileExerciser::Grow(uint64_t size) {
  if (size > model_.size()) model_.resize(size);
}

void FileExerciser::Compare(uint64_t offset, ByteView found) {
  if (found.empty()) return;  // the offset may lie beyond the end of the file
  const auto expected = model_.begin() + static_cast<ptrdiff_t>(offset);
  const auto [bad, good] = std::mismatch(found.begin(), found.end(), expected);
  if (bad == found.end()) return;
  const auto first = offset + static_cast<uint64_t>(bad - found.begin());
  uint64_t count = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] != expected[static_cast<ptrdiff_t>(i)]) ++count;
  }
  Fail("byte " + std::to_string(first) + " is " + std::to_string(*bad) + " instead of " +
       std::to_string(*good) + "; " + std::to_string(count) + " bytes differ");
}

void FileExerciser::Note(std::string operation) {
  history_.push_back(std::to_string(step_) + ": " + std::move(operation));
  if (history_.size() > kOperationsToTell) history_.pop_front();
}

void FileExerciser::Expect(bool good, const std::string& what) {
  if (!good) Fail(what + ": " + std::strerror(errno));
}

void FileExerciser::Fail(const std::string& what) const {
  std::string text = options_.path + ", seed " + std::to_string(options_.seed) + ", step " +
                     std::to_string(step_) + " (size " + std::to_string(model_.size()) +
                     "): " + what + "\nThe last operations:";
  for (const std::string& operation : history_) text += "\n  " + operation;
  throw ExerciseFailure(text);
}

}  // namespace siltfs::testing
