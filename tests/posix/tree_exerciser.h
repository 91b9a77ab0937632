// Exercises a tree in one of several processes that perform random operations in the same tree. The
// processes make, move and remove each other's entries, so errors with this cause are expected. Any
// other error (EIO, ESTALE, ENOSYS, ...) is a failure.
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

  // Performs this many operations. Throws UnexpectedError.
  void Run(uint64_t operations);

  // Returns the number of successful calls of each kind.
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
  int OpenAny(std::string_view call, int flags);  // negative for an expected error
  Bytes Content();
  // Counts a success and returns true. Returns false if the error is in `also`, or if the other
  // processes can cause it. Throws UnexpectedError for any other error.
  bool Judge(std::string_view call, const std::string& path, long result,
             const std::set<int>& also = {});

  const std::string root_;
  const uint64_t seed_;
  Random random_;
  uint64_t step_ = 0;
  std::map<std::string_view, uint64_t> successes_;
};

}  // namespace siltfs::testing
