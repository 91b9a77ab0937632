// The model: the tree below a writer's directory after some operations have reached the core. Not
// thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/crash/kill/history.h"

namespace siltfs::killtest {

enum class NodeType : uint8_t { kFile, kDirectory, kSymlink };

struct Node {
  NodeType type = NodeType::kFile;
  Content content;               // a file's
  std::optional<Content> dirty;  // written over it, but perhaps still in the kernel's cache
  std::string target;            // a symlink's
  std::map<std::string, std::string> xattrs;
  std::set<std::string> names;
  // Numbers of the last operations that changed it or wrote to it; set by the Recorder.
  std::optional<size_t> last_change;
  std::optional<size_t> last_write;
};

class Tree {
 public:
  Tree();
  Tree(Tree&&) = default;
  Tree& operator=(Tree&&) = default;

  // A copy with its own nodes, without numbers of operations.
  Tree Copy() const;

  // Returns the names of possibly changed nodes.
  std::set<std::string> Apply(const Operation& operation);

  const std::map<std::string, std::shared_ptr<Node>>& names() const { return names_; }
  // Null if there is none; "" is the directory itself.
  std::shared_ptr<Node> Find(const std::string& name) const;
  std::shared_ptr<Node> DirectoryOf(const std::string& name) const;

 private:
  void Enter(const std::string& name, const std::shared_ptr<Node>& node);
  void Drop(const std::string& name, std::set<std::string>& changed);

  std::map<std::string, std::shared_ptr<Node>> names_;
  std::shared_ptr<Node> root_;
};

}  // namespace siltfs::killtest
