// Tests O_APPEND from several processes, and O_DIRECT together with the page cache.
#include <cstring>
#include <memory>

#include <sys/uio.h>

#include "store/base/random.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/processes.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// Returns "<writer>:<number>:<filler>\n", of varying length.
std::string Record(int writer, int number) {
  std::string record = std::to_string(writer) + ":" + std::to_string(number) + ":";
  record.append(static_cast<size_t>((writer * 37 + number * 101) % 900), 'a' + writer);
  return record + "\n";
}

TEST_CASE_METHOD(OnTheFileSystem,
                 "Records appended by several processes are whole, and none is lost") {
  constexpr int kWriters = 4;
  constexpr int kRecords = 400;
  REQUIRE(WriteFile(Path("log"), "") == 0);
  std::vector<std::unique_ptr<ChildProcess>> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.push_back(std::make_unique<ChildProcess>([&, writer] {
      const Descriptor log(Path("log"), O_WRONLY | O_APPEND);
      for (int i = 0; i < kRecords; ++i) {
        const std::string record = Record(writer, i);
        const auto size = static_cast<ssize_t>(record.size());
        if (write(log.get(), record.data(), record.size()) != size) return 1;
      }
      return 0;
    }));
  }
  for (const auto& writer : writers) REQUIRE(writer->Wait() == 0);
  DropCaches();
  const std::string log = ReadFile(Path("log"));
  std::vector<int> next(kWriters, 0);
  size_t begin = 0;
  while (begin < log.size()) {
    const size_t end = log.find('\n', begin);
    REQUIRE(end != std::string::npos);
    const int writer = log[begin] - '0';
    REQUIRE((writer >= 0 && writer < kWriters));
    REQUIRE(log.substr(begin, end + 1 - begin) ==
            Record(writer, next[static_cast<size_t>(writer)]));
    ++next[static_cast<size_t>(writer)];
    begin = end + 1;
  }
  CHECK(next == std::vector<int>(kWriters, kRecords));
}

TEST_CASE_METHOD(OnTheFileSystem, "Appending ignores the position, and moves it to the end") {
  REQUIRE(WriteFile(Path("log"), "first ") == 0);
  const Descriptor log(Path("log"), O_RDWR | O_APPEND);
  REQUIRE(lseek(log.get(), 2, SEEK_SET) == 2);
  REQUIRE(write(log.get(), "second", 6) == 6);
  CHECK(lseek(log.get(), 0, SEEK_CUR) == 12);
  REQUIRE(pwrite(log.get(), " third", 6, 0) == 6);  // with O_APPEND Linux ignores the offset
  CHECK(ReadFile(Path("log")) == "first second third");
}

TEST_CASE_METHOD(OnTheFileSystem, "Vectors are gathered and scattered in order") {
  const Descriptor file(Path("vectors"), O_RDWR | O_CREAT);
  char one[] = "one ";
  char two[] = "two ";
  char three[] = "three";
  const iovec out[] = {{one, 4}, {two, 4}, {three, 5}};
  REQUIRE(pwritev(file.get(), out, 3, 10) == 13);
  char first[6] = {};
  char rest[9] = {};
  const iovec in[] = {{first, 5}, {rest, 8}};
  REQUIRE(preadv(file.get(), in, 2, 10) == 13);
  CHECK(std::string(first) + rest == "one two three");
}

class PageBuffer {
 public:
  explicit PageBuffer(size_t pages)
      : memory_(std::aligned_alloc(4096, pages * 4096), &std::free), size_(pages * 4096) {
    std::memset(memory_.get(), 0, size_);
  }
  uint8_t* data() const { return static_cast<uint8_t*>(memory_.get()); }
  size_t size() const { return size_; }
  MutableByteView bytes() const { return {data(), size_}; }

 private:
  std::unique_ptr<void, void (*)(void*)> memory_;
  size_t size_;
};

struct DirectFile : OnTheFileSystem {
  Descriptor direct{Path("file"), O_RDWR | O_CREAT | O_DIRECT};
  Descriptor cached{Path("file"), O_RDWR};
  PageBuffer buffer{300};

  DirectFile() {
    REQUIRE(direct.error() == 0);
    Random(9).Fill(buffer.bytes());
  }
  Bytes Data() const { return Bytes(buffer.data(), buffer.data() + buffer.size()); }
};

TEST_CASE_METHOD(DirectFile, "Direct writes are visible to cached reads, and the reverse") {
  const Bytes data = Data();
  REQUIRE(WriteAt(direct.get(), 0, buffer.bytes()) == 0);
  CHECK(ReadAt(cached.get(), 0, data.size()) == data);
  REQUIRE(WriteAt(cached.get(), 100'000, AsBytes("through the cache")) == 0);
  PageBuffer page(2);
  REQUIRE(pread(direct.get(), page.data(), 8192, 98'304) == 8192);
  CHECK(AsText(page.bytes().subspan(100'000 - 98'304, 17)) == "through the cache");
}

TEST_CASE_METHOD(DirectFile, "A direct write is visible to a process that has read the old bytes") {
  REQUIRE(WriteAt(cached.get(), 0, Bytes(8192, 'o')) == 0);
  REQUIRE(ReadAt(cached.get(), 0, 8192) == Bytes(8192, 'o'));
  std::memset(buffer.data(), 'n', 4096);
  REQUIRE(pwrite(direct.get(), buffer.data(), 4096, 4096) == 4096);
  CHECK(ReadAt(cached.get(), 4096, 4096) == Bytes(4096, 'n'));
  CHECK(ReadAt(cached.get(), 0, 4096) == Bytes(4096, 'o'));
}

TEST_CASE_METHOD(DirectFile, "A direct write extends the file, a direct read stops at its end") {
  REQUIRE(pwrite(direct.get(), buffer.data(), 8192, 1 << 20) == 8192);
  CHECK(StatOf(Path("file")).st_size == (1 << 20) + 8192);
  REQUIRE(Outcome(ftruncate(cached.get(), (1 << 20) + 5000)) == 0);
  PageBuffer page(2);
  CHECK(pread(direct.get(), page.data(), 8192, 1 << 20) == 5000);
  CHECK(std::memcmp(page.data(), buffer.data(), 5000) == 0);
  CHECK(pread(direct.get(), page.data(), 8192, 2 << 20) == 0);
  CHECK(pread(direct.get(), page.data(), 8192, 0) == 8192);
  CHECK(page.data()[0] == 0);
}

}  // namespace
}  // namespace siltfs::testing
