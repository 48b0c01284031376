roofline peaks devices 'NVIDIA L5'
