// One object per inode, kept while it is used; locks are taken in one order.
#include "fs/inodes/inode_table.h"

#include <atomic>
#include <thread>

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

TEST_CASE("an inode is one object as long as a reference to it exists") {
  InodeTable table(4);
  InodePtr held = table.Get(1);
  for (InodeNumber number = 2; number < 100; ++number) table.Get(number);
  REQUIRE(table.Get(1) == held);
}

TEST_CASE("an open inode is not released, whether it is referenced or not") {
  InodeTable table(4);
  std::weak_ptr<Inode> open = table.Get(1);
  open.lock()->open_count = 1;
  std::weak_ptr<Inode> closed = table.Get(2);
  for (InodeNumber number = 3; number < 100; ++number) table.Get(number);
  REQUIRE_FALSE(open.expired());
  REQUIRE(table.Get(1) == open.lock());
  REQUIRE(closed.expired());
  open.lock()->open_count = 0;
  for (InodeNumber number = 3; number < 100; ++number) table.Get(number);
  REQUIRE(open.expired());
}

TEST_CASE("the table keeps the most recently used inodes, at most its capacity") {
  InodeTable table(10);
  std::vector<std::weak_ptr<Inode>> inodes;
  for (InodeNumber number = 0; number < 10; ++number) inodes.push_back(table.Get(number));
  table.Get(0);
  for (InodeNumber number = 10; number < 19; ++number) table.Get(number);
  REQUIRE_FALSE(inodes[0].expired());
  for (size_t i = 1; i < 10; ++i) REQUIRE(inodes[i].expired());
  REQUIRE(table.Snapshot().size() == 10);
}

TEST_CASE("a table that holds too many open inodes shrinks after these inodes are closed") {
  InodeTable table(8);
  std::vector<InodePtr> inodes;
  for (InodeNumber number = 0; number < 50; ++number) {
    inodes.push_back(table.Get(number));
    inodes.back()->open_count = 1;
  }
  REQUIRE(table.Snapshot().size() == 50);
  for (const InodePtr& inode : inodes) inode->open_count = 0;
  inodes.clear();
  for (InodeNumber number = 100; number < 200; ++number) table.Get(number);
  REQUIRE(table.Snapshot().size() == 8);
}

TEST_CASE("an erased inode becomes a new object on the next Get") {
  InodeTable table(4);
  InodePtr old = table.Get(1);
  table.Erase(1);
  table.Erase(1);
  REQUIRE(table.Get(1) != old);
}

TEST_CASE("an inode passed twice is locked once") {
  InodeTable table(4);
  InodePtr inode = table.Get(1);
  { InodeLock lock({inode, table.Get(2), inode}, InodeLock::Mode::kExclusive); }
  InodeLock again(inode, InodeLock::Mode::kExclusive);
}

TEST_CASE("readers share an inode") {
  InodeTable table(4);
  InodeLock one(table.Get(1), InodeLock::Mode::kShared);
  bool both = false;
  std::thread other([&] {
    InodeLock two(table.Get(1), InodeLock::Mode::kShared);
    both = true;
  });
  other.join();  // the join would not end if the thread had to wait
  REQUIRE(both);
}

TEST_CASE("threads that lock sets of inodes in any order exclude each other without deadlock") {
  constexpr InodeNumber kInodes = 5;
  InodeTable table(2);                         // small, so that objects are dropped and made again
  std::vector<uint64_t> counters(kInodes, 0);  // each guarded by its inode's lock
  std::atomic<uint64_t> total = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (int i = 0; i < 3000; ++i) {
        std::vector<InodePtr> set;
        std::vector<InodeNumber> numbers;
        for (int k = 0; k < 3; ++k) {
          numbers.push_back(random.Below(kInodes));
          set.push_back(table.Get(numbers.back()));
        }
        InodeLock lock(set, InodeLock::Mode::kExclusive);
        for (InodeNumber number : numbers) ++counters[number];
        total += numbers.size();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t sum = 0;
  for (uint64_t counter : counters) sum += counter;
  REQUIRE(sum == total);
}

}  // namespace siltfs::testing
