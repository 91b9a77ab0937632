// The order in which writers of one file are admitted.
#include "fs/inodes/write_sequencer.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace siltfs {
namespace {

constexpr std::chrono::hours kForever{1};
constexpr uint64_t kPiece = 1U << 20;

// Writers that wait in their own threads, and the order in which they were admitted.
class Writers {
 public:
  explicit Writers(WriteSequencer& turns) : turns_(turns) {}
  ~Writers() {
    for (std::thread& thread : threads_) thread.join();
  }

  // Starts a writer of this piece; returns when the writer waits.
  void Wait(uint64_t piece) {
    const size_t before = turns_.waiting();
    threads_.emplace_back([this, piece] {
      const SequencedWrite turn(turns_, piece * kPiece, kPiece);
      const std::scoped_lock lock(mutex_);
      order_.push_back(piece);
    });
    while (turns_.waiting() == before) std::this_thread::yield();
  }
  std::vector<uint64_t> Order() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return order_;
  }

 private:
  WriteSequencer& turns_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::vector<uint64_t> order_;
};

void Write(WriteSequencer& turns, uint64_t piece) {
  const SequencedWrite turn(turns, piece * kPiece, kPiece);
}

void WriteStream(WriteSequencer& turns, uint64_t pieces) {
  for (uint64_t piece = 0; piece < pieces; ++piece) Write(turns, piece);
}

using Order = std::vector<uint64_t>;

}  // namespace

TEST_CASE("waiting writers go in the order of their offsets") {
  WriteSequencer turns(kForever);
  Writers writers(turns);
  turns.Begin(0, kPiece);
  for (const uint64_t piece : {3, 1, 4, 2}) writers.Wait(piece);
  turns.End();
  REQUIRE(writers.Order() == Order{1, 2, 3, 4});
}

TEST_CASE("a waiting write at a lower offset goes after the writes that continue the stream") {
  WriteSequencer turns(kForever);
  Writers writers(turns);
  turns.Begin(5 * kPiece, kPiece);
  for (const uint64_t piece : {2, 7, 6}) writers.Wait(piece);
  turns.End();
  REQUIRE(writers.Order() == Order{6, 7, 2});
}

TEST_CASE("in a stream a write waits for the write that precedes it in the file") {
  WriteSequencer turns(kForever);
  WriteStream(turns, 4);
  Writers writers(turns);
  writers.Wait(6);
  writers.Wait(5);
  REQUIRE(turns.waiting() == 2);
  Write(turns, 4);
  REQUIRE(writers.Order() == Order{5, 6});
}

TEST_CASE("an unfilled gap ends the stream, and writers do not wait for another gap") {
  WriteSequencer turns(std::chrono::milliseconds(1));
  WriteStream(turns, 4);
  Writers writers(turns);
  Write(turns, 6);  // the call returns although 4 and 5 are not written
  Write(turns, 9);
  Write(turns, 8);
  REQUIRE(turns.waiting() == 0);
}

TEST_CASE("without a stream writers do not wait for gaps") {
  WriteSequencer turns(kForever);
  for (const uint64_t piece : {7, 2, 3, 9, 1, 2, 8}) Write(turns, piece);
  REQUIRE(turns.waiting() == 0);
}

TEST_CASE("a write before the end of a stream, or far after the end, does not wait") {
  WriteSequencer turns(kForever);
  WriteStream(turns, 8);
  Write(turns, 2);
  WriteStream(turns, 8);
  Write(turns, 100);
  REQUIRE(turns.waiting() == 0);
}

TEST_CASE("a stream with a steady supply of waiting writes does not starve another writer") {
  WriteSequencer turns(kForever);
  Writers writers(turns);
  turns.Begin(kPiece, kPiece);
  writers.Wait(0);
  for (uint64_t piece = 2; piece < 202; ++piece) writers.Wait(piece);
  turns.End();
  const Order order = writers.Order();
  const auto first = std::find(order.begin(), order.end(), 0);
  REQUIRE(order.size() == 201);
  REQUIRE(first - order.begin() < 100);
  REQUIRE(std::is_sorted(order.begin(), first));
  REQUIRE(std::is_sorted(first, order.end()));
}

TEST_CASE("a writer that leaves gaps on purpose waits at only a few of them") {
  WriteSequencer turns(std::chrono::milliseconds(1));
  uint64_t piece = 0;
  for (int stride = 0; stride < 100; ++stride, ++piece) {
    for (int i = 0; i < 8; ++i) Write(turns, piece++);
  }
  REQUIRE(turns.waited_in_vain() >= 1);
  REQUIRE(turns.waited_in_vain() <= 3);
}

TEST_CASE("after a filled gap a write waits at the next gap, too") {
  WriteSequencer turns(kForever);
  WriteStream(turns, 4);
  Writers writers(turns);
  writers.Wait(5);
  Write(turns, 4);
  REQUIRE(writers.Order() == Order{5});
  writers.Wait(7);
  Write(turns, 6);
  REQUIRE(writers.Order() == Order{5, 7});
}

}  // namespace siltfs
