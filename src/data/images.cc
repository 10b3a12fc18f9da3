// Folders of images, and changes to images. Files, decoded images and results all lie in pooled buffers; a thread keeps
// a decoder and a resizer.
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/seed.h"
#include "data/formats/augment.h"
#include "data/formats/image.h"
#include "data/formats/image_folder.h"
#include "data/formats/source.h"
#include "data/indexed.h"

namespace millpond::data {
namespace {

// The numbers of the files; their names are read when an image is.
class ImageFilesNode final : public IndexedNode {
 public:
  explicit ImageFilesNode(std::shared_ptr<const ImageFolder> folder)
      : folder_(std::move(folder)), holding_("data/image_names", folder_->memory()) {
    spec_.push_back({DType::kInt64, {}});
  }
  std::string name() const override { return "image_files"; }
  std::string text() const override { return format("image_files({})", size()); }
  const ElementSpec& spec() const override { return spec_; }
  int64_t size() const override { return folder_->size(); }
  const std::vector<std::string>& class_names() const override { return folder_->class_names(); }
  void gather(const Run&, uint64_t, std::span<int64_t> index, std::span<std::byte* const> to) const override {
    std::memcpy(to[0], index.data(), index.size_bytes());
  }
  bool view(const Run&, uint64_t, int64_t, Element&) const override { return false; }

 private:
  std::shared_ptr<const ImageFolder> folder_;
  Holding holding_;
  ElementSpec spec_;
};

constexpr int64_t kLargestFile = int64_t{256} << 20;

struct OfThread {
  ImageDecoder decoder;
  Resizer resizer;
  std::string path;
};
OfThread& of_thread() {
  thread_local OfThread all;
  return all;
}

void decode(const ImageFolder& folder, const ImageDatasetOptions& o, Element& e, Buffers& buffers) {
  OfThread& mine = of_thread();
  const int64_t i = e[0].values<int64_t>()[0];
  folder.path(i, mine.path);
  const SharedSource source = open_file(mine.path);
  if (source->size() > kLargestFile)
    throw Error(Code::kFormat, format("{} is {} long, too much for an image", mine.path, Bytes{source->size()}));
  Tensor bytes = buffers.tensor(DType::kUInt8, {source->size()});
  const std::span<std::byte> file(bytes.data(), size_t(bytes.size()));
  source->read_exactly(0, file);
  ImageOptions options{.channels = o.channels};
  if (o.fast) options.at_least_height = o.height, options.at_least_width = o.width;
  const ImageSize size = decoded_size(image_header(file, mine.path), options, mine.path);
  Tensor whole = buffers.tensor(DType::kUInt8, {size.height, size.width, size.channels});
  mine.decoder.decode(file, whole.values<uint8_t>(), options, mine.path);
  bytes = {};
  const Image<const uint8_t> from{whole.values<uint8_t>().data(), size.height, size.width, size.channels};
  const int64_t height = o.height ? o.height : size.height, width = o.width ? o.width : size.width;
  const bool same = height == size.height && width == size.width;
  Tensor out;
  if (o.dtype == DType::kUInt8) {
    out = same ? whole : buffers.tensor(DType::kUInt8, {height, width, size.channels});
    if (!same) mine.resizer.resize(from, Image<uint8_t>{out.values<uint8_t>().data(), height, width, size.channels});
  } else {
    out = buffers.tensor(DType::kFloat32, {height, width, size.channels});
    const Image<float> to{out.values<float>().data(), height, width, size.channels};
    if (same)
      to_float(from, to, 1);
    else
      mine.resizer.resize(from, to);
  }
  e[0] = std::move(out);
  if (o.labels) {
    Tensor label = buffers.tensor(DType::kInt32, {});
    label.values<int32_t>()[0] = folder.label(i);
    e.push_back(std::move(label));
  }
}

template <class T>
void change(const AugmentOptions& o, Element& e, Buffers& buffers) {
  const Shape shape = e[0].shape();
  Draws draws(0, buffers.seed());
  // What is not asked for is not drawn, so that adding an option changes the others' numbers only behind it.
  Image<const T> from{reinterpret_cast<const T*>(e[0].data()), shape[0], shape[1], shape[2]};
  if (o.crop_height || o.crop_width)
    from =
        random_crop(from, o.crop_height ? o.crop_height : from.height, o.crop_width ? o.crop_width : from.width, draws);
  const bool across = o.flip_horizontal && draws.coin(), down = o.flip_vertical && draws.coin();
  const double turn = o.rotation != 0 ? draws.uniform(-o.rotation, o.rotation) * 2 * std::numbers::pi : 0;
  const double brighter = o.brightness != 0 ? draws.uniform(-o.brightness, o.brightness) * o.value_range : 0;
  const bool resize = o.resize_height || o.resize_width;
  if (!resize || across || down || turn != 0 || brighter != 0) {
    Tensor copy = buffers.tensor(dtype_of<T>(), {from.height, from.width, from.channels});
    const Image<T> to{copy.values<T>().data(), from.height, from.width, from.channels};
    if (turn != 0)
      rotate(from, to, turn);
    else
      for (int64_t y = 0; y < from.height; ++y)
        std::memcpy(to.row(y), from.row(y), size_t(from.width * from.channels) * sizeof(T));
    if (across) flip_horizontal(to);
    if (down) flip_vertical(to);
    if (brighter != 0) brightness(to, float(brighter), 0, float(o.value_range));
    e[0] = std::move(copy);
    from = to;
  }
  if (resize) {
    const int64_t height = o.resize_height ? o.resize_height : from.height,
                  width = o.resize_width ? o.resize_width : from.width;
    Tensor out = buffers.tensor(dtype_of<T>(), {height, width, from.channels});
    of_thread().resizer.resize(from, Image<T>{out.values<T>().data(), height, width, from.channels});
    e[0] = std::move(out);
  }
}

}  // namespace

NodePtr images_node(const std::string& folder, const ImageDatasetOptions& o) {
  if (o.height < 0 || o.width < 0)
    throw Error(Code::kUsage, format("from_image_folder: images of {} x {}", o.height, o.width));
  if (o.dtype != DType::kFloat32 && o.dtype != DType::kUInt8)
    throw Error(Code::kUsage, format("from_image_folder: images of {}", o.dtype)).hint("float32 or uint8");
  if (o.channels != 1 && o.channels != 3)
    throw Error(Code::kUsage, format("from_image_folder: {} channels", o.channels)).hint("1 or 3");
  auto names = std::make_shared<const ImageFolder>(folder, ImageFolderOptions{.labels = o.labels});
  ElementSpec spec{TensorSpec{o.dtype, {o.height ? o.height : -1, o.width ? o.width : -1, o.channels}}};
  if (o.labels) spec.push_back({DType::kInt32, {}});
  auto files = std::make_shared<ImageFilesNode>(names);
  return map_node(std::move(files), [names, o](Element& e, Buffers& b) { decode(*names, o, e, b); },
                  {.parallel = o.parallel, .ignore_errors = o.skip_bad_images, .spec = spec, .name = "images"},
                  {.any_order = true, .reads_only = true});
}

NodePtr augment_node(NodePtr input, const AugmentOptions& o) {
  const auto positive = [](int64_t v, const char* what) {
    if (v < 0) throw Error(Code::kUsage, format("augment: {} is {}", what, v));
  };
  positive(o.crop_height, "crop_height"), positive(o.crop_width, "crop_width"),
      positive(o.resize_height, "resize_height"), positive(o.resize_width, "resize_width");
  ElementSpec spec = input->spec();
  if (spec.known) {
    if (spec.empty() || spec[0].shape.size() != 3 ||
        (spec[0].dtype != DType::kUInt8 && spec[0].dtype != DType::kFloat32))
      throw Error(Code::kShape, format("augment: elements are {}; the first tensor must be an image, height x width x "
                                       "channels, uint8 or float32",
                                       to_string(spec)))
          .hint("augment comes before batch");
    for (int d = 0; d < 2; ++d)
      if (const int64_t resized = d ? o.resize_width : o.resize_height, cropped = d ? o.crop_width : o.crop_height;
          resized || cropped)
        spec[0].shape[size_t(d)] = resized ? resized : cropped;
  }
  const auto f = [o](Element& e, Buffers& b) {
    if (e.empty() || e[0].shape().rank() != 3 || (e[0].dtype() != DType::kUInt8 && e[0].dtype() != DType::kFloat32))
      throw Error(Code::kShape, format("augment: an element is {}; the first tensor must be an image, height x width x "
                                       "channels, uint8 or float32",
                                       to_string(spec_of(e))));
    if (e[0].dtype() == DType::kUInt8)
      change<uint8_t>(o, e, b);
    else
      change<float>(o, e, b);
  };
  MapOptions options{.parallel = o.parallel, .name = "augment"};
  if (spec.known) options.spec = spec;
  return map_node(std::move(input), f, std::move(options),
                  {.seed = o.seed ? *o.seed : draw_seed(), .reads_only = true});
}

}  // namespace millpond::data
