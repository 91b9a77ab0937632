// Exercises a tree: random operations of one process among several that work in the same tree. What
// another has just made, moved or removed decides how a call ends, so errors of that kind are
// expected; every other error (EIO, ESTALE, ENOSYS, ...) is a failure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "store/base/bytes.h"
#include "store/base/random.h"

namespace siltfs::testing {

class UnexpectedError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class TreeExerciser {
 public:
  TreeExerciser(std::string root, uint64_t seed);

  // Throws UnexpectedError.
  void Run(uint64_t operations);

  // How many calls of each kind did what they were asked to.
  const std::map<std::string_view, uint64_t>& successes() const { return successes_; }

 private:
  void Step();

  void Create();
  void Write();
  void Read();
  void Truncate();
  void CopyRange();
  void Rename();
  void Link();
  void Unlink();
  void MakeDirectory();
  void RemoveDirectory();
  void MakeSymlink();
  void SetXattr();
  void List();
  void Stat();

  std::string AnyPath();
  int OpenAny(std::string_view call, int flags);  // negative if it ended as it may
  Bytes Content();
  // Counts a success; an error is one of those that races explain, or of `also`.
  bool Judge(std::string_view call, const std::string& path, long result,
             const std::set<int>& also = {});

  const std::string root_;
  const uint64_t seed_;
  Random random_;
  uint64_t step_ = 0;
  std::map<std::string_view, uint64_t> successes_;
};

}  // namespace siltfs::testing
