# ResNet-50 is 12 % slower, MobileNetV2 30 % faster, VGG-16 gone; the noise is that of a Mac.
cp "$RFL_TEST_DATA"/ledger/mac_mps.csv a.csv
awk -F, -v OFS=, 'NR > 1 { $11 *= $4 == "resnet50" ? 0.88 : 1.3; $14 = "2.10.0" } $4 != "vgg16"' a.csv >b.csv
roofline -q compare a.csv b.csv --fail-if missing
