#include "tests/crash/kill/tree.h"

#include <unordered_map>

namespace siltfs::killtest {
namespace {

std::shared_ptr<Node> MakeNode(NodeType type) {
  auto node = std::make_shared<Node>();
  node->type = type;
  return node;
}

}  // namespace

Tree::Tree() : root_(MakeNode(NodeType::kDirectory)) {}

Tree Tree::Copy() const {
  Tree copy;
  std::unordered_map<const Node*, std::shared_ptr<Node>> copies;
  for (const auto& [name, node] : names_) {
    auto& copied = copies[node.get()];
    if (!copied) {
      copied = std::make_shared<Node>(*node);
      copied->last_change.reset();
      copied->last_write.reset();
    }
    copy.names_[name] = copied;
  }
  return copy;
}

std::shared_ptr<Node> Tree::Find(const std::string& name) const {
  if (name.empty()) return root_;
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : found->second;
}

std::shared_ptr<Node> Tree::DirectoryOf(const std::string& name) const {
  const size_t slash = name.rfind('/');
  return Find(slash == std::string::npos ? "" : name.substr(0, slash));
}

void Tree::Enter(const std::string& name, const std::shared_ptr<Node>& node) {
  names_[name] = node;
  node->names.insert(name);
}

void Tree::Drop(const std::string& name, std::set<std::string>& changed) {
  const auto found = names_.find(name);
  if (found == names_.end()) return;
  changed.insert(found->second->names.begin(), found->second->names.end());
  found->second->names.erase(name);
  names_.erase(found);
}

std::set<std::string> Tree::Apply(const Operation& operation) {
  std::set<std::string> changed{operation.name};
  const std::shared_ptr<Node> node = Find(operation.name);
  if (node) changed.insert(node->names.begin(), node->names.end());
  switch (operation.kind) {
    case OperationKind::kMakeDirectory:
      Enter(operation.name, MakeNode(NodeType::kDirectory));
      break;
    case OperationKind::kMakeSymlink:
      Enter(operation.name, MakeNode(NodeType::kSymlink));
      Find(operation.name)->target = operation.other;
      break;
    case OperationKind::kCreate:
      Enter(operation.name, MakeNode(NodeType::kFile));
      break;
    case OperationKind::kWrite:
      if (operation.written_back) {
        node->content = operation.content;
        node->dirty.reset();
      } else {
        node->dirty = operation.content;
      }
      break;
    case OperationKind::kWriteBack:
      if (node->dirty) node->content = *node->dirty;
      node->dirty.reset();
      break;
    case OperationKind::kTruncate:
      node->content = operation.content;
      node->dirty.reset();
      break;
    case OperationKind::kRename:
      changed.insert(operation.other);
      Drop(operation.other, changed);
      Drop(operation.name, changed);
      Enter(operation.other, node);
      break;
    case OperationKind::kLink:
      changed.insert(operation.other);
      Enter(operation.other, node);
      break;
    case OperationKind::kUnlink:
    case OperationKind::kRemoveDirectory:
      Drop(operation.name, changed);
      break;
    case OperationKind::kSetXattr:
      node->xattrs[operation.other] = std::string(AsText(operation.content.view()));
      break;
  }
  return changed;
}

}  // namespace siltfs::killtest
