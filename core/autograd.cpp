#include "core/autograd.h"

#include <queue>
#include <unordered_map>

#include "core/backend.h"
#include "core/check.h"
#include "core/storage.h"

namespace crucible {
namespace {

std::atomic<uint64_t> next_sequence{1};
thread_local bool no_grad = false;
thread_local const OpInfo* running_op = nullptr;  // whose closure runs now, for messages

std::string_view name_of(const Node& node) {
  return node.op ? node.op->name : "leaf";
}

void check_gradient(const Node& consumer, const Node& input, int index, const Tensor& gradient) {
  check(gradient.defined(), "{}: backward left the gradient of input {} undefined; it is needed.",
        name_of(consumer), index);
  check(gradient.shape() == input.shape && gradient.dtype() == input.dtype,
        "{}: backward gave input {} a gradient of {} {}; the input is {} {}.", name_of(consumer),
        index, to_string(gradient.shape()), name_of(gradient.dtype()), to_string(input.shape),
        name_of(input.dtype));
}

// Closures may return views; they are given contiguous gradients.
Tensor packed(const Tensor& x) {
  if (x.is_contiguous()) return x;
  Tensor y = empty_like(x);
  run(prim::Copy{.x = x, .y = y});
  return y;
}

// y += x, whatever the views behind them.
void add_into(const Tensor& y, const Tensor& x) {
  run(prim::Binary{.op = BinaryOp::add, .a = y, .b = x, .y = y});
}

// Leaves keep their gradient in the arena slot if they have one, else in a tensor of their own.
void accumulate_leaf(Node& leaf, const Tensor& gradient) {
  const bool first = !leaf.grad.defined();
  if (leaf.arena_slot.defined()) {
    const bool in_place = gradient.raw_data() == leaf.arena_slot.raw_data();
    if (first) {
      if (!in_place) run(prim::Copy{.x = gradient, .y = leaf.arena_slot});
      leaf.grad = leaf.arena_slot;
    } else {
      add_into(leaf.grad, gradient);
    }
    leaf.slot_taken = false;
  } else if (first) {
    // The closure may hand out one tensor twice, or a view: the leaf gets a copy of its own.
    leaf.grad = empty_like(gradient);
    run(prim::Copy{.x = gradient, .y = leaf.grad});
  } else {
    add_into(leaf.grad, gradient);
  }
}

struct Pending {
  Tensor gradient;
  bool owned = false;  // a sum made here, so that the next one may be added in place
};

void accumulate(Pending& pending, const Tensor& gradient) {
  if (!pending.gradient.defined()) {
    pending.gradient = gradient;
  } else if (pending.owned) {
    add_into(pending.gradient, gradient);
  } else {
    Tensor sum = empty_like(gradient);
    run(prim::Binary{.op = BinaryOp::add, .a = pending.gradient, .b = gradient, .y = sum});
    pending = {sum, true};
  }
}

// Runs the graph behind `root` in descending order of creation.
void run_backward(const std::shared_ptr<Node>& root, const Tensor& dy) {
  NoGrad off;
  auto earlier = [](const auto& a, const auto& b) { return a->sequence < b->sequence; };
  std::priority_queue<std::shared_ptr<Node>, std::vector<std::shared_ptr<Node>>, decltype(earlier)>
      ready(earlier);
  std::unordered_map<Node*, Pending> pending;

  if (!root->op) return accumulate_leaf(*root, dy);
  ready.push(root);
  pending[root.get()].gradient = dy;
  while (!ready.empty()) {
    const std::shared_ptr<Node> node = ready.top();
    ready.pop();
    const auto it = pending.find(node.get());
    const Tensor gradient = packed(it->second.gradient);
    pending.erase(it);
    check(node->backward != nullptr,
          "{}: backward: the graph was already released; call backward() once per forward.",
          name_of(*node));
    running_op = node->op;
    // The closure and the edges go before the next node runs, so that saved tensors die early.
    Gradients gradients;
    {
      const Backward backward = std::exchange(node->backward, nullptr);
      gradients = backward(gradient, Needs(*node));
    }
    const auto inputs = std::exchange(node->inputs, {});
    check(gradients.size() == inputs.size(), "{}: backward gave {} gradients for {} inputs.",
          name_of(*node), gradients.size(), inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i]) continue;
      Node& input = *inputs[i];
      check_gradient(*node, input, static_cast<int>(i), gradients[i]);
      if (!input.op) {
        accumulate_leaf(input, gradients[i]);
        continue;
      }
      const auto [slot, fresh] = pending.try_emplace(&input);
      if (fresh) ready.push(inputs[i]);
      accumulate(slot->second, std::exchange(gradients[i], Tensor()));
    }
  }
}

}  // namespace

Node::~Node() {
  // Graphs can be a million ops long: release by a loop, not by recursion.
  std::vector<std::shared_ptr<Node>> doomed = std::move(inputs);
  while (!doomed.empty()) {
    const std::shared_ptr<Node> node = std::move(doomed.back());
    doomed.pop_back();
    if (node && node.use_count() == 1) {
      for (auto& input : node->inputs) doomed.push_back(std::move(input));
      node->inputs.clear();
    }
  }
}

void NarrowCopy::refresh() {
  const uint64_t now = values.storage()->version();
  if (fresh && version == now) return;
  run(prim::Copy{.x = values, .y = copy});
  copy.storage()->bump_version();
  version = now;
  fresh = true;
}

std::shared_ptr<Node> make_leaf(const Tensor& x) {
  check(is_floating(x.dtype()),
        "set_requires_grad: dtype {} is not floating; only f16, bf16, f32 "
        "and f64 tensors have gradients.",
        name_of(x.dtype()));
  auto leaf = std::make_shared<Node>();
  leaf->shape = x.shape();
  leaf->dtype = x.dtype();
  leaf->device = x.device();
  leaf->sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  return leaf;
}

bool Needs::operator[](int input) const {
  return node_.inputs[input] != nullptr;
}

Tensor Needs::destination(int input) const {
  Node& target = *node_.inputs[input];
  if (target.arena_slot.defined() && !target.grad.defined() && !target.slot_taken) {
    target.slot_taken = true;
    return target.arena_slot;
  }
  return Tensor::empty(target.shape, target.dtype, target.device);
}

NoGrad::NoGrad() : previous_(std::exchange(no_grad, true)) {}
NoGrad::~NoGrad() {
  no_grad = previous_;
}
bool NoGrad::active() {
  return no_grad;
}

Saved::Saved(const Tensor& tensor)
    : tensor_(tensor.detach()), version_(tensor.defined() ? tensor.storage()->version() : 0) {}

const Tensor& Saved::get() const {
  if (tensor_.defined()) {
    const uint64_t now = tensor_.storage()->version();
    check(
        now == version_,
        "{}: backward: a saved tensor of {} was changed in place after forward: version {}, saved "
        "at {}; run backward before the change, or change a copy.",
        running_op ? running_op->name : "op", to_string(tensor_.shape()), now, version_);
  }
  return tensor_;
}

namespace autograd {

bool wanted(const Inputs& inputs) {
  if (no_grad) return false;
  for (const Tensor& input : inputs) {
    if (input.requires_grad()) return true;
  }
  return false;
}

Tensor attach(const OpInfo& op, const Tensor& y, const Inputs& inputs, Backward backward) {
  auto node = std::make_shared<Node>();
  node->op = &op;
  node->inputs.reserve(inputs.size());
  for (const Tensor& input : inputs) node->inputs.push_back(input.node());
  node->backward = std::move(backward);
  node->shape = y.shape();
  node->dtype = y.dtype();
  node->device = y.device();
  node->sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  return y.with_node(std::move(node));
}

}  // namespace autograd

Tensor no_gradient(const OpInfo& op, const Tensor& y, const autograd::Inputs& inputs) {
  return record(op, y, inputs, [&op](const Tensor&) -> Gradients {
    fail("{}: backward: this op has no gradient; detach() its input if that is meant.", op.name);
  });
}

Tensor& Tensor::set_requires_grad() {
  check(node_ == nullptr || node_->op == nullptr,
        "set_requires_grad: the tensor is the result of {}; only leaves can be told so.",
        node_ && node_->op ? node_->op->name : "");
  if (!node_) node_ = make_leaf(*this);
  return *this;
}

const Tensor& Tensor::grad() const {
  static const Tensor none;
  return node_ ? node_->grad : none;
}

void Tensor::zero_grad() const {
  if (node_) node_->grad = Tensor();
}

void Tensor::backward() const {
  check(numel() == 1,
        "backward: the tensor has shape {}; reduce it to one element or pass the "
        "upstream gradient.",
        to_string(shape_));
  backward(Tensor::full(shape_, 1.0, dtype_, device()));
}

void Tensor::backward(const Tensor& dy) const {
  check(node_ != nullptr, "backward: the tensor has no history; no input required a gradient.");
  check(dy.defined() && dy.shape() == shape_ && dy.dtype() == dtype_,
        "backward: the upstream gradient must match the tensor: {} {}.", to_string(shape_),
        name_of(dtype_));
  run_backward(node_, dy.detach());
}

}  // namespace crucible
