// Mapped files: mmap(2), msync(2), and their coherence with read and write.
#include <signal.h>
#include <sys/mman.h>

#include "store/base/random.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/processes.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

class Mapping {
 public:
  Mapping(int fd, size_t size, int protection, int flags, off_t offset = 0)
      : data_(mmap(nullptr, size, protection, flags, fd, offset)), size_(size) {
    if (data_ == MAP_FAILED) throw std::runtime_error("mmap");
  }
  ~Mapping() { munmap(data_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  uint8_t* data() const { return static_cast<uint8_t*>(data_); }
  ByteView bytes() const { return {data(), size_}; }
  int Sync() const { return Outcome(msync(data_, size_, MS_SYNC)); }

 private:
  void* data_;
  size_t size_;
};

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

struct FileToMap : OnTheFileSystem {
  Descriptor file{Path("file"), O_RDWR | O_CREAT};
  Bytes data = Bytes(64 * 4096);

  FileToMap() {
    Random(3).Fill(data);
    REQUIRE(WriteAt(file.get(), 0, data) == 0);
  }
};

bool Same(ByteView a, ByteView b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

TEST_CASE_METHOD(FileToMap,
                 "Writes are visible in a mapping, and its stores are visible to reads") {
  const Mapping map(file.get(), data.size(), kReadWrite, MAP_SHARED);
  CHECK(Same(map.bytes(), data));
  REQUIRE(WriteAt(file.get(), 10'000, AsBytes("written")) == 0);
  CHECK(AsText(map.bytes().subspan(10'000, 7)) == "written");
  std::copy_n(AsBytes("stored").begin(), 6, map.data() + 20'000);
  const Bytes read = ReadAt(file.get(), 20'000, 6);
  CHECK(AsText(read) == "stored");
}

TEST_CASE_METHOD(FileToMap, "A shared mapping's changes survive dropping all caches") {
  {
    const Mapping map(file.get(), data.size(), kReadWrite, MAP_SHARED);
    for (size_t i = 0; i < data.size(); i += 1111) map.data()[i] = data[i] ^= 0x5a;
    REQUIRE(map.Sync() == 0);
  }
  REQUIRE(file.Close() == 0);
  DropCaches();
  const Descriptor again(Path("file"));
  CHECK(ReadAt(again.get(), 0, data.size() + 1) == data);
}

TEST_CASE_METHOD(FileToMap, "Changes made after closing the descriptor survive, too") {
  {
    const Mapping map(file.get(), data.size(), kReadWrite, MAP_SHARED);
    REQUIRE(file.Close() == 0);
    map.data()[100'000] = data[100'000] ^= 0xff;
  }
  DropCaches();
  const Descriptor again(Path("file"));
  CHECK(ReadAt(again.get(), 0, data.size() + 1) == data);
}

TEST_CASE_METHOD(FileToMap, "A private mapping's changes stay private") {
  const Mapping map(file.get(), data.size(), kReadWrite, MAP_PRIVATE);
  map.data()[5] = static_cast<uint8_t>(~data[5]);
  CHECK(ReadAt(file.get(), 0, data.size()) == data);
  REQUIRE(Outcome(fsync(file.get())) == 0);
  DropCaches();
  CHECK(ReadAt(file.get(), 0, data.size()) == data);
}

TEST_CASE_METHOD(FileToMap, "Two processes share a mapping") {
  const Mapping map(file.get(), data.size(), kReadWrite, MAP_SHARED);
  REQUIRE(InChild([&] {
            const Descriptor own(Path("file"), O_RDWR);
            const Mapping other(own.get(), data.size(), kReadWrite, MAP_SHARED);
            other.data()[77'777] = 42;
            return 0;
          }) == 0);
  CHECK(map.data()[77'777] == 42);
}

TEST_CASE_METHOD(FileToMap, "A mapping from an offset shows that part") {
  const Mapping map(file.get(), 8192, PROT_READ, MAP_SHARED, 5 * 4096);
  CHECK(Same(map.bytes(), ByteView(data).subspan(5 * 4096, 8192)));
}

TEST_CASE_METHOD(OnTheFileSystem,
                 "The last page is zero behind the end of the file, and stays so") {
  const Descriptor file(Path("short"), O_RDWR | O_CREAT);
  REQUIRE(WriteAt(file.get(), 0, AsBytes("short")) == 0);
  const Mapping map(file.get(), 4096, kReadWrite, MAP_SHARED);
  CHECK(map.data()[5] == 0);
  map.data()[100] = 7;  // this byte is behind the end of the file
  REQUIRE(map.Sync() == 0);
  REQUIRE(Outcome(ftruncate(file.get(), 200)) == 0);
  CHECK(ReadAt(file.get(), 100, 1) == Bytes{0});
  CHECK(StatOf(Path("short")).st_size == 200);
}

TEST_CASE_METHOD(FileToMap, "Access to a page behind the end of the file causes a bus error") {
  CHECK(InChild([&] {
          const Mapping map(file.get(), data.size() + 8192, PROT_READ, MAP_SHARED);
          signal(SIGBUS, SIG_DFL);
          return map.data()[data.size() + 4096] + 1;
        }) == 1000 + SIGBUS);
}

TEST_CASE_METHOD(FileToMap, "Truncation removes pages from a mapping, growth adds zeros") {
  const Mapping map(file.get(), data.size(), kReadWrite, MAP_SHARED);
  REQUIRE(map.data()[50'000] == data[50'000]);
  REQUIRE(Outcome(ftruncate(file.get(), 4096)) == 0);
  REQUIRE(Outcome(ftruncate(file.get(), static_cast<off_t>(data.size()))) == 0);
  CHECK(map.data()[4095] == data[4095]);
  CHECK(Same(map.bytes().subspan(4096), Bytes(data.size() - 4096, 0)));
}

TEST_CASE_METHOD(FileToMap, "A hole punched under a mapping is visible in it") {
  const Mapping map(file.get(), data.size(), kReadWrite, MAP_SHARED);
  REQUIRE(map.data()[8192] == data[8192]);
  REQUIRE(Outcome(fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8000, 9000)) ==
          0);
  CHECK(Same(map.bytes().subspan(8000, 9000), Bytes(9000, 0)));
  CHECK(map.data()[7999] == data[7999]);
  CHECK(map.data()[17'000] == data[17'000]);
}

TEST_CASE_METHOD(FileToMap, "A writable mapping needs a writable descriptor") {
  const Descriptor reader(Path("file"), O_RDONLY);
  const Descriptor writer(Path("file"), O_WRONLY);
  CHECK(mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, reader.get(), 0) == MAP_FAILED);
  CHECK(errno == EACCES);
  CHECK(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, writer.get(), 0) == MAP_FAILED);
  CHECK(errno == EACCES);
}

TEST_CASE_METHOD(OnTheFileSystem, "A program on the file system can be run") {
  const std::string copy = Path("true");
  REQUIRE(system(("cp /bin/true '" + copy + "'").c_str()) == 0);
  CHECK(system(("'" + copy + "'").c_str()) == 0);
}

}  // namespace
}  // namespace siltfs::testing
